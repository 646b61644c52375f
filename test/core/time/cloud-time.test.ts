import { describe, expect, it } from "vitest";
import { clocksDisagree, cloudTime, instant, parseHttpDate } from "../../../src/core/time/time.ts";

const noonAt = instant(Date.UTC(2026, 10, 20, 12));

describe("the cloud's time", () => {
  it.each([
    // [local clock less the Date header, whether the local clock is used]
    [0, true],
    // The header is cut to a second and takes time to arrive: up to two seconds prove nothing.
    [999, true],
    [2000, true],
    [-2000, true],
    [2001, false],
    [-2001, false],
    [3_600_000, false],
  ])("with the local clock %d ms from the header is the local time: %s", (skewMs, oursCounts) => {
    const receivedAt = instant(noonAt + skewMs);
    const times = { dateAt: noonAt, receivedAt };
    expect(cloudTime(times)).toBe(oursCounts ? receivedAt : noonAt);
    expect(clocksDisagree(times)).toBe(!oursCounts);
  });

  it("is the local time if a response has no date", () => {
    expect(cloudTime({ dateAt: undefined, receivedAt: noonAt })).toBe(noonAt);
  });
});

describe("an HTTP date", () => {
  it.each([
    ["Mon, 11 Apr 2026 22:26:58 GMT", Date.UTC(2026, 3, 11, 22, 26, 58)],
    // EC2 writes its scheduled events without a weekday.
    ["21 Jan 2019 09:00:43 GMT", Date.UTC(2019, 0, 21, 9, 0, 43)],
    ["Thu, 29 Feb 2024 23:59:59 GMT", Date.UTC(2024, 1, 29, 23, 59, 59)],
  ])("is parsed from %s", (text, epochMs) => {
    expect(parseHttpDate(text)).toBe(epochMs);
  });

  it.each([
    "",
    "2026-04-11T22:26:58Z",
    "Thu, 29 Feb 2026 10:00:00 GMT",
    "Mon, 31 Apr 2026 10:00:00 GMT",
    "Mon, 11 Foo 2026 10:00:00 GMT",
    "Mon, 11 Apr 2026 24:00:00 GMT",
    "Mon, 11 Apr 2026 10:60:00 GMT",
    "Mon, 11 Apr 2026 10:00:00 CET",
    "Mon, 11 Apr 2026 10:00:00 GMT and more",
    "Mon, 00 Apr 2026 10:00:00 GMT",
  ])("is not parsed from %j", (text) => {
    expect(parseHttpDate(text)).toBeUndefined();
  });
});
