import { expect, it } from "vitest";
import {
  departSays,
  forcedSays,
  heldDepartureSays,
  replacedHoldSays,
} from "../../src/board/act/act-says.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { departStep } from "../../src/core/departure/decision.ts";
import { inEnglish } from "../../src/core/reason/english.ts";
import { hours, minus, minutes, plus } from "../../src/core/time/time.ts";
import { translated } from "../../src/web/words/translated.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";
import { dawn } from "../support/model-world.ts";

/** Nodes whose deadlines are an hour apart. */
const nodesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    return { name: `n${index + 1}`, deadlineAt: plus(dawn, hours(index + 1)) };
  });

it.each([
  [0, []],
  [1, ["n1 leaves at its deadline 2026-11-20T01:00:00Z even so"]],
  [2, ["2 nodes leave at their deadlines even so, the first at 2026-11-20T01:00:00Z: n1"]],
  [1000, ["1000 nodes leave at their deadlines even so, the first at 2026-11-20T01:00:00Z: n1"]],
])("of %i nodes that a freeze does not stop, it says so, in either language", (count, said) => {
  const says = forcedSays(nodesOf(count));
  expect(says.map(inEnglish)).toEqual(said);
  for (const one of says) {
    expect(translated(one, "ja").replaceAll(/n1|T|Z/g, "")).not.toMatch(/[A-Za-z]/);
  }
});

const node = aNode("n1");
const live = (over: Parameters<typeof aDeparture>[1]) => [aDeparture(node, over)];

it.each([
  [
    "cancels the planned departure under way",
    live({ name: "d1", status: { phase: "Draining" } }),
    ["n1 is leaving (Draining): the hold cancels departure d1, and what has been done is undone"],
  ],
  ["says nothing of one that waits", live({ name: "d1", departAt: dawn }), []],
  [
    "does not keep a requested one",
    live({ name: "d1", cause: "Manual", departAt: dawn }),
    ["n1 leaves as requested at 2026-11-20T00:00:00Z even so: departure d1"],
  ],
  [
    "does not keep one on a notice",
    live({ name: "d1", cause: "SpotInterruption", noticedAt: dawn }),
    ["n1 leaves on a notice even so: departure d1"],
  ],
  [
    "does not concern one that has ended",
    live({ name: "d1", cause: "Manual", status: { phase: "Ended" } }),
    [],
  ],
])("a hold %s", (_, departures, said) => {
  const says = heldDepartureSays(departures, "true");
  expect(says.map(inEnglish)).toEqual(said);
  for (const one of says) {
    expect(translated(one, "ja").replaceAll(/n1|d1|Draining|T|Z/g, "")).not.toMatch(/[A-Za-z]/);
  }
});

it.each<[string | undefined, NodeFacts["holdWriter"], string | null, readonly string[]]>([
  [undefined, undefined, "true", []],
  ["true", undefined, "true", []],
  ["true", undefined, null, []],
  ["true", undefined, "4h", ['It replaces the hold "true" of n1']],
  ["true", { manager: "kubectl-annotate" }, null, []],
  [
    "true",
    { manager: "kubectl-annotate" },
    "4h",
    ['It replaces the hold "true" of n1 by kubectl-annotate'],
  ],
  ["4h", { manager: "lastcall", user: "alice" }, null, ['It ends the hold "4h" of n1 by alice']],
])("in place of the hold %j by %j, the hold %j says whose it replaces", (hold, by, value, said) => {
  // The name of an earlier author, which another program has left behind.
  const annotations = { "lastcall.dev/hold-by": "bob", ...(hold && { "lastcall.dev/hold": hold }) };
  const says = replacedHoldSays(aNode("n1", { annotations, holdWriter: by }), value);
  expect(says.map(inEnglish)).toEqual(said);
});

const policy = "spot";
const deadlineAt = plus(dawn, hours(3));
const lifetimeEnding = (count: number) => {
  const endsAt = plus(dawn, hours(count));
  return { policy, deadlineAt: minus(endsAt, minutes(30)), endsAt };
};

it.each([
  ["has no limit", {}, ["n1 leaves now, by 2026-11-20T03:00:00Z"]],
  [
    "reaches it",
    { lifetime: lifetimeEnding(4), takenAt: deadlineAt },
    ["n1 leaves now, by 2026-11-20T03:00:00Z"],
  ],
  [
    "has its deadline before it",
    { lifetime: lifetimeEnding(3) },
    [
      "n1 leaves now, by 2026-11-20T03:00:00Z",
      "n1 may not have until 2026-11-20T03:00:00Z: its deadline is 2026-11-20T02:30:00Z, and its lifetime.max by policy spot ends at 2026-11-20T03:00:00Z",
    ],
  ],
  [
    "ends before it",
    { lifetime: lifetimeEnding(2) },
    [
      "n1 leaves now, by 2026-11-20T03:00:00Z (its machine may end at 2026-11-20T02:00:00Z)",
      "n1 may not have until 2026-11-20T03:00:00Z: its deadline is 2026-11-20T01:30:00Z, and its lifetime.max by policy spot ends at 2026-11-20T02:00:00Z",
    ],
  ],
  [
    "is taken by the cloud before it",
    { lifetime: lifetimeEnding(2), takenAt: plus(dawn, hours(1)) },
    [
      "n1 leaves now, by 2026-11-20T03:00:00Z (its machine may end at 2026-11-20T01:00:00Z)",
      "n1 may not have until 2026-11-20T03:00:00Z: the cloud takes its machine at 2026-11-20T01:00:00Z",
    ],
  ],
])("of a requested deadline, the preview says that the node %s", (_, end, said) => {
  const step = departStep(node, { departAt: dawn, deadlineAt }, []);
  const request = { departAt: dawn, isNow: true, deadlineAt, policy: undefined, step, end };
  const says = departSays(node, request);
  expect(says.slice(0, -1).map(inEnglish)).toEqual(said);
  for (const one of says) {
    expect(translated(one, "ja").replaceAll(/n1|spot|lifetime\.max|T|Z/g, "")).not.toMatch(
      /[A-Za-z]/,
    );
  }
});

it("of a moved request, the preview says which deadline it drops, in either language", () => {
  const asked = live({ name: "d1", cause: "Manual", departAt: dawn, deadlineAt });
  const departAt = plus(deadlineAt, hours(1));
  const step = departStep(node, { departAt }, asked);
  const request = {
    departAt,
    isNow: false,
    deadlineAt: undefined,
    policy: undefined,
    step,
    end: {},
  };
  const said = departSays(node, request).filter(({ says }) => says === "act.DeadlineDropped");
  expect(said.map(inEnglish)).toEqual([
    "n1 was requested to leave by 2026-11-20T03:00:00Z: that deadline is dropped, since it is over when the departure starts",
  ]);
  expect(translated(said, "ja").replaceAll(/n1|T|Z/g, "")).not.toMatch(/[A-Za-z]/);
});
