import { describe, expect, it } from "vitest";
import {
  clockMeant,
  instantMeant,
  instantOfNamedTime,
  parseNamedTime,
  sayLocally,
} from "../../../src/core/time/named-time.ts";
import { formatInstant, type Instant, parseInstant } from "../../../src/core/time/time.ts";

const at = (text: string): Instant => parseInstant(text) as Instant;
const berlin = "Europe/Berlin";

function meant(text: string, now: string, timeZone = berlin): string | undefined {
  const time = parseNamedTime(text);
  return time && formatInstant(instantOfNamedTime(time, { now: at(now), timeZone }));
}

describe("a named time", () => {
  it.each([
    ["2026-12-01T00:00:00Z", "2026-11-29T18:00:00Z", "2026-12-01T00:00:00.000Z"],
    ["now", "2026-11-29T18:00:00.250Z", "2026-11-29T18:00:00.250Z"],
    ["2h", "2026-11-29T18:00:00Z", "2026-11-29T20:00:00.000Z"],
    ["2h", "2026-11-29T18:00:00.250Z", "2026-11-29T20:00:01.000Z"],
    // 19:00 in Berlin.
    ["22:00", "2026-11-29T18:00:00Z", "2026-11-29T21:00:00.000Z"],
    ["6:30", "2026-11-29T18:00:00Z", "2026-11-30T05:30:00.000Z"],
    ["19:00", "2026-11-29T18:00:00Z", "2026-11-30T18:00:00.000Z"],
    // The night to 2026-03-29 has no 02:30, and the one to 2026-10-25 has it twice.
    ["02:30", "2026-03-28T22:00:00Z", "2026-03-29T01:00:00.000Z"],
    ["02:30", "2026-10-24T22:00:00Z", "2026-10-25T00:30:00.000Z"],
  ])("%s, said at %s, is %s", (text, now, result) => {
    expect(meant(text, now)).toBe(result);
  });

  it.each(["24:00", "22", "22:60", "tomorrow", "0", "0s", "1d", "-2h", "22:00Z", ""])(
    "%j is none",
    (text) => {
      expect(parseNamedTime(text)).toBeUndefined();
    },
  );
});

describe("what an instant is said to be", () => {
  const now = at("2026-11-29T18:00:00Z");

  it.each([
    ["2026-11-29T21:00:00Z", berlin, "22:00 Europe/Berlin (21:00Z), in 3h"],
    ["2026-11-30T05:00:00Z", berlin, "2026-11-30 06:00 Europe/Berlin (05:00Z), in 11h"],
    [
      "2026-11-29T23:30:00Z",
      berlin,
      "2026-11-30 00:30 Europe/Berlin (2026-11-29T23:30Z), in 5h30m",
    ],
    ["2026-11-29T20:00:07.400Z", "UTC", "20:00:07 UTC, in 2h"],
    ["2026-11-29T18:00:45Z", "UTC", "18:00:45 UTC, in 45s"],
  ])("%s in %s is %s", (instant, timeZone, said) => {
    expect(sayLocally(at(instant), { now, timeZone })).toBe(said);
  });
});

describe("a mistyped time", () => {
  it.each([
    ["10pm", "22:00"],
    ["12 am", "00:00"],
    ["12:30pm", "12:30"],
    ["22h", "22:00"],
    ["22.30", "22:30"],
    ["9:05", "09:05"],
    ["24:00", "00:00"],
    ["25", undefined],
    ["22:75", undefined],
    ["noon", undefined],
  ])("of a day, %s, means %s", (text, clock) => {
    expect(clockMeant(text)).toBe(clock);
  });

  it.each([
    ["2026-12-01", "2026-12-01T00:00:00Z"],
    ["2026-12-01 22:00", "2026-12-01T22:00:00Z"],
    ["2026-12-01T22:00+09:00", "2026-12-01T22:00:00+09:00"],
    ["2026-02-30T12:00:00Z", "2026-02-28T12:00:00Z"],
    ["2028-02-31", "2028-02-29T00:00:00Z"],
    ["2026-12-32", "2026-12-30T00:00:00Z"],
    ["2026-13-01", undefined],
  ])("of a date, %s, means %s", (text, instant) => {
    expect(instantMeant(text)).toBe(instant);
  });
});
