import { expect, it } from "vitest";
import { relativeTime, spanText } from "../../../src/cli/command-line/terminal.ts";
import { instant } from "../../../src/core/time/time.ts";

it.each([
  [0, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [3_599_999, "59m"],
  [3_600_000, "1h00m"],
  [3 * 3_600_000 + 4 * 60_000, "3h04m"],
  [47 * 3_600_000 + 59 * 60_000, "47h59m"],
  [48 * 3_600_000, "2d0h"],
  [(6 * 24 + 2) * 3_600_000, "6d2h"],
])("a span of %d ms is %s", (spanMs, text) => {
  expect(spanText(spanMs)).toBe(text);
});

it.each([
  [3 * 3_600_000 + 12 * 60_000, "in 3h12m"],
  [999, "now"],
  [0, "now"],
  [-999, "now"],
  [-5 * 60_000, "5m ago"],
])("an instant %d ms ahead is %s", (aheadMs, text) => {
  const from = instant(1_700_000_000_000);
  expect(relativeTime(instant(from + aheadMs), from)).toBe(text);
});
