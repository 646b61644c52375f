import { expect, it } from "vitest";
import { backoff } from "../../../src/cloud/release/backoff.ts";
import { seconds } from "../../../src/core/time/time.ts";

const rule = { firstMs: seconds(2), capMs: seconds(15) };

it.each([
  [0, 1_000, 2_000],
  [1, 2_000, 4_000],
  [2, 4_000, 8_000],
  [3, 7_500, 15_000],
  [60, 7_500, 15_000],
  [5_000, 7_500, 15_000],
])("the pause after attempt %i lies between %i and %i ms", (attempt, lowMs, highMs) => {
  expect(backoff(attempt, { rule, rng: () => 0 })).toBe(lowMs);
  expect(backoff(attempt, { rule, rng: () => 1 - 1e-9 })).toBe(highMs);
});
