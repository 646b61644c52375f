import { expect, it } from "vitest";
import { unknownNodeMarks, unknownPodMarks } from "../../src/cli/input/unknown-mark.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import { aNode } from "../core/fleet-builder.ts";

const node = (name: string, mark: string) =>
  aNode(name, { annotations: { [mark]: "true", "other.dev/hold": "true" } });

it.each([
  ["lastcall.dev/hold", []],
  ["lastcall.dev/hold-by", []],
  [
    "lastcall.dev/holds",
    [
      "The annotation lastcall.dev/holds of n1 is unknown and does nothing (did you mean lastcall.dev/hold?)",
    ],
  ],
  [
    "lastcall.dev/Hold",
    [
      "The annotation lastcall.dev/Hold of n1 is unknown and does nothing (did you mean lastcall.dev/hold?)",
    ],
  ],
  ["lastcall.dev/team", ["The annotation lastcall.dev/team of n1 is unknown and does nothing"]],
])("a node's annotation %s is told if it does nothing", (mark, said) => {
  expect(unknownNodeMarks([node("n1", mark)])).toEqual(said);
});

it("one annotation of many nodes is told once", () => {
  const nodes = ["n1", "n2", "n3"].map((name) => node(name, "lastcall.dev/holds"));
  expect(unknownNodeMarks(nodes)).toHaveLength(1);
  expect(unknownNodeMarks(nodes)[0]).toContain("of n1 and 2 more is unknown");
});

it("a pod's annotation is told with its namespace", () => {
  const annotations = { "lastcall.dev/do-not-disrupt": "true" };
  const pod = { namespace: "shop", name: "web-1", annotations } as unknown as PodFacts;
  expect(unknownPodMarks([pod])).toEqual([
    "The annotation lastcall.dev/do-not-disrupt of shop/web-1 is unknown and does nothing (did you mean lastcall.dev/do-not-disturb?)",
  ]);
});
