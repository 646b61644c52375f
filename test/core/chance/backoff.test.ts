import { describe, expect, it } from "vitest";
import { around, backoffMs } from "../../../src/core/chance/chance.ts";
import { seconds } from "../../../src/core/time/time.ts";

describe("a pause around a second", () => {
  it.each([
    [0, 900],
    [0.5, 1000],
    [1, 1100],
  ])("with the random number %d is %d ms", (chance, spanMs) => {
    expect(around(1000, () => chance)).toBe(spanMs);
  });
});

describe("the backoff", () => {
  it.each([
    [0, 1_000, 2_000],
    [1, 2_000, 4_000],
    [2, 4_000, 8_000],
    [3, 7_500, 15_000],
    [60, 7_500, 15_000],
    [5_000, 7_500, 15_000],
  ])("before retry %i lies between %i and %i ms", (attempt, lowMs, highMs) => {
    const limits = { firstMs: seconds(2), mostMs: seconds(15) };
    expect(backoffMs(attempt, () => 0, limits)).toBe(lowMs);
    expect(backoffMs(attempt, () => 1 - 1e-9, limits)).toBe(highMs);
  });

  it("grows from 100 ms to 10 s by default", () => {
    expect(backoffMs(0, () => 1)).toBe(100);
    expect(backoffMs(20, () => 1)).toBe(10_000);
  });
});
