import { expect, it } from "vitest";
import { forcedSays, heldDepartureSays, replacedHoldSays } from "../../src/board/act/act-says.ts";
import { hours, plus } from "../../src/core/time/time.ts";
import { translated } from "../../src/web/words/sentence.tsx";
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
  expect(forcedSays(nodesOf(count))).toEqual(said);
  for (const text of said) {
    expect(translated(`${text}.`, "ja").replaceAll(/n1|T|Z/g, "")).not.toMatch(/[A-Za-z]/);
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
  expect(heldDepartureSays(departures, "true")).toEqual(said);
  for (const text of said) {
    expect(translated(`${text}.`, "ja").replaceAll(/n1|d1|Draining|T|Z/g, "")).not.toMatch(
      /[A-Za-z]/,
    );
  }
});

it.each([
  [{}, "true", []],
  [{ "lastcall.dev/hold": "true" }, "true", []],
  [{ "lastcall.dev/hold": "true" }, null, []],
  [{ "lastcall.dev/hold": "true" }, "4h", ['It replaces the hold "true" of n1']],
  [
    { "lastcall.dev/hold": "4h", "lastcall.dev/hold-by": "alice" },
    null,
    ['It ends the hold "4h" of n1 by alice'],
  ],
])("with the annotations %j, the hold %j says whose it replaces", (annotations, value, said) => {
  expect(replacedHoldSays(aNode("n1", { annotations }), value)).toEqual(said);
});
