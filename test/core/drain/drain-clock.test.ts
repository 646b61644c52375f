import { describe, expect, it } from "vitest";
import {
  activeTime,
  answeredAt,
  beatOf,
  type DrainClock,
} from "../../../src/core/drain/drain-clock.ts";
import { hours, millis, minutes, seconds } from "../../../src/core/time/time.ts";

const beatMs = seconds(30);
const fresh: DrainClock = { activeMs: millis(0), seenMs: 1000 };

describe("the time that a drain's timeout counts", () => {
  it("is all of it while the API server answers once a beat", () => {
    let clock = fresh;
    for (let ms = 1000; ms <= 301_000; ms += 30_000) clock = answeredAt(clock, { ms, beatMs });
    expect(activeTime(clock, { ms: 301_000, beatMs })).toBe(minutes(5));
  });

  it("stops two beats after the last answer, and goes on at the next", () => {
    const silent = { ms: 1000 + hours(6), beatMs };
    expect(activeTime(fresh, silent)).toBe(minutes(1));
    const again = answeredAt(fresh, silent);
    expect(activeTime(again, { ms: silent.ms + 10_000, beatMs })).toBe(seconds(70));
  });

  it("never runs backwards", () => {
    expect(activeTime(fresh, { ms: 0, beatMs })).toBe(0);
  });
});

it.each([
  [seconds(5), seconds(1)],
  [seconds(20), seconds(2)],
  [minutes(5), seconds(30)],
  [hours(2), minutes(1)],
])("a drain with a timeout of %d ms records the time that counts every %d ms", (timeout, beat) => {
  expect(beatOf(timeout)).toBe(beat);
});
