import { expect, it } from "vitest";
import { forcedSays } from "../../src/board/act/act-says.ts";
import { hours, plus } from "../../src/core/time/time.ts";
import { translated } from "../../src/web/words/sentence.tsx";
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
