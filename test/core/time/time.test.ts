import { describe, expect, it } from "vitest";
import {
  formatDuration,
  formatInstant,
  formatRounded,
  instant,
  millis,
  parseDuration,
  parseInstant,
} from "../../../src/core/time/time.ts";

describe("an instant", () => {
  it.each([
    ["1970-01-01T00:00:00Z", 0],
    ["1970-01-01T00:00:01.5Z", 1500],
    ["1970-01-01T01:00:00+01:00", 0],
    ["2000-03-01T00:00:00Z", 951_868_800_000],
  ])("is parsed from %s", (text, epochMs) => {
    expect(parseInstant(text)).toBe(epochMs);
  });

  it.each([
    "",
    "yesterday",
    "2026-11-20",
    "2026-11-20T00:00:00",
    "2026-02-30T00:00:00Z",
    "1700000000",
  ])("is not parsed from %j", (text) => {
    expect(parseInstant(text)).toBeUndefined();
  });

  it("is formatted in UTC with milliseconds", () => {
    expect(formatInstant(instant(1500))).toBe("1970-01-01T00:00:01.500Z");
  });
});

describe("a duration", () => {
  it.each([
    ["0", 0],
    ["0s", 0],
    ["250ms", 250],
    ["90s", 90_000],
    ["12h30m", 45_000_000],
    ["1.5h", 5_400_000],
    ["1h0m0.5s", 3_600_500],
  ])("is parsed from %s as Go parses it", (text, spanMs) => {
    expect(parseDuration(text)).toBe(spanMs);
  });

  it("is parsed up to Go's maximum", () => {
    expect(parseDuration("2562047h47m16s")).toBe(9_223_372_036_000);
  });

  it.each(["", "5", "1d", "h", "-5m", "1h 30m", "5 m", "1e3s", "2562048h", `${"9".repeat(400)}h`])(
    "is not parsed from %j",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  it.each([
    [0, "0s"],
    [86_400_000, "24h"],
    [45_000_000, "12h30m"],
    [65_000, "1m5s"],
    [250, "250ms"],
  ])("of %i ms is formatted as %s", (spanMs, text) => {
    expect(formatDuration(millis(spanMs))).toBe(text);
  });
});

it.each([
  [1782, "2s"],
  [999_600, "16m40s"],
  [959_350, "15m59s"],
  [250, "250ms"],
  [0, "0s"],
  [-1782, "-2s"],
  [3_600_000, "1h"],
])("a span of %d ms is %s for people", (ms, text) => {
  expect(formatRounded(millis(ms))).toBe(text);
});
