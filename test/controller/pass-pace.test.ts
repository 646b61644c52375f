import { expect, it } from "vitest";
import { gatherAfter, isQuick, timedAfter } from "../../src/controller/pass-pace.ts";
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

it("What a pass has moved delays no start, unless one pass after another announces one", () => {
  const moved = { decidingMs: millis(0), restedMs: millis(0), hasMoved: true };
  const waits = (nextInMs: number, quickPasses = 1) =>
    gatherAfter({ ...moved, nextInMs, quickPasses });
  expect([10, 500, 60_000].map((nextInMs) => waits(nextInMs))).toEqual([200, 500, 1000]);
  expect(waits(10, 2)).toBe(1000);
});

it("A pass comes at the instant that the one before named, and later if each names a near one", () => {
  expect([0, 1, 2, 3, 4, 5, 6, 100].map(timedAfter)).toEqual([
    0, 0, 100, 200, 400, 800, 1000, 1000,
  ]);
  expect([0, 999, 1000].map(isQuick)).toEqual([true, true, false]);
});
