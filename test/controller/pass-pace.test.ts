import { expect, it } from "vitest";
import { gatherAfter } from "../../src/controller/pass-pace.ts";
import { millis } from "../../src/core/time/time.ts";

it.each([
  [0, 0, 200],
  [20, 0, 200],
  [50, 0, 450],
  [50, 300, 150],
  [300, 0, 2700],
  [2000, 0, 5000],
  [2000, 4900, 100],
  [0, 190, 20],
  [0, 60_000, 20],
  [2000, 60_000, 20],
])(
  "After a pass that took %i ms and ended %i ms ago, a change waits %i ms for others",
  (decidingMs, restedMs, waits) => {
    expect(gatherAfter({ decidingMs: millis(decidingMs), restedMs: millis(restedMs) })).toBe(waits);
  },
);
