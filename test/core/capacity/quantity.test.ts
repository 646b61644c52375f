import { expect, it } from "vitest";
import { formatQuantity, parseQuantity } from "../../../src/core/cluster/node.ts";

// Expected values from the grammar in apimachinery pkg/api/resource/quantity.go.
it.each<[unknown, number | undefined]>([
  ["4", 4],
  ["250m", 0.25],
  ["0.5", 0.5],
  [".5", 0.5],
  ["1.5Gi", 1_610_612_736],
  ["128974848", 128_974_848],
  ["129e6", 129_000_000],
  ["1E3", 1_000],
  ["1E", 1e18],
  ["500n", 5e-7],
  ["-1Ki", -1_024],
  [2, 2],
  ["", undefined],
  ["4 cores", undefined],
  ["1.2.3", undefined],
  ["Gi", undefined],
  [undefined, undefined],
  [Number.NaN, undefined],
])("parses the quantity %o as %o", (text, amount) => {
  if (amount === undefined) expect(parseQuantity(text)).toBeUndefined();
  else expect(parseQuantity(text)).toBeCloseTo(amount, 12);
});

it.each<[string, number, string]>([
  ["cpu", 0.25, "250m"],
  ["cpu", 0.1 + 0.2, "300m"],
  ["cpu", 0.0001, "1m"],
  ["memory", 1_610_612_736, "1610612736"],
  ["memory", 1.5, "2"],
  ["nvidia.com/gpu", 1, "1"],
])("formats an amount of %s, %d, as %s", (resource, amount, text) => {
  expect(formatQuantity(resource, amount)).toBe(text);
});
