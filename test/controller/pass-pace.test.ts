import { expect, it } from "vitest";
import { gatherAfter } from "../../src/controller/pass-pace.ts";
import { millis } from "../../src/core/time.ts";

it.each([
  [0, 200],
  [20, 200],
  [50, 450],
  [300, 2700],
  [2000, 5000],
])("A pass after one of %i ms of thought waits %i ms for further changes", (thought, waits) => {
  expect(gatherAfter(millis(thought))).toBe(waits);
});
