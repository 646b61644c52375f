import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/contracts/clock.ts";
import { hours, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { ServerClock } from "../../src/kube/server-clock.ts";

const serverStart = instant(Date.UTC(2026, 10, 20, 12));

/** The clocks of a server and of a machine, which is off by `offMs`. */
function clocks(offMs: number) {
  const time = { passedMs: 0, offMs };
  const slept: number[] = [];
  const own: Clock = {
    now: () => plus(serverStart, seconds(0 + (time.passedMs + time.offMs) / 1000)),
    monotonic: () => 5000 + time.passedMs,
    sleep: async () => undefined,
    sleepUntil: async (at) => {
      slept.push(at - own.now());
    },
  };
  const clock = new ServerClock(own);
  const serverNow = () => instant(serverStart + time.passedMs);
  /** The server answers, which arrives later. */
  const answer = (lateMs = 0) => {
    const at = serverNow();
    time.passedMs += lateMs;
    clock.hear(instant(at - (at % 1000)));
  };
  const aheadMs = () => clock.now() - serverNow();
  return { time, own, clock, slept, answer, aheadMs };
}

describe("the API server's time", () => {
  it.each([minutes(10), -minutes(10), hours(30), seconds(10)])(
    "is that of its answers if this machine's clock is off by %d ms",
    (offMs) => {
      const { answer, aheadMs, time } = clocks(offMs);
      expect(aheadMs()).toBe(offMs);
      answer();
      answer();
      expect(Math.abs(aheadMs())).toBeLessThanOrEqual(1000);
      time.passedMs += hours(5);
      expect(Math.abs(aheadMs())).toBeLessThanOrEqual(1000);
    },
  );

  it.each([0, seconds(2), -seconds(2)])(
    "is that of this machine while the clocks agree within seconds: %d ms",
    (offMs) => {
      const { answer, aheadMs } = clocks(offMs);
      answer();
      expect(aheadMs()).toBe(offMs);
    },
  );

  it("does not follow a step of this machine's clock", () => {
    const { answer, aheadMs, time } = clocks(0);
    answer();
    time.offMs = hours(1);
    expect(Math.abs(aheadMs())).toBeLessThanOrEqual(1000);
    time.offMs = 0;
    expect(aheadMs()).toBe(0);
  });

  it("is not put back by an answer that a busy process reads late", () => {
    const { answer, aheadMs, time } = clocks(minutes(5));
    answer();
    time.passedMs += seconds(2);
    answer(seconds(20));
    expect(Math.abs(aheadMs())).toBeLessThanOrEqual(1000);
  });

  it("follows a server whose clock is corrected", () => {
    const { answer, aheadMs, time } = clocks(minutes(5));
    answer();
    time.passedMs += minutes(2);
    time.offMs = 0;
    answer();
    expect(aheadMs()).toBe(0);
  });

  it.each([hours(1), -hours(1), minutes(2)])(
    "is not set by a server whose clock is set by %d ms, while this machine's agrees",
    (setMs) => {
      const { clock, answer, aheadMs, time } = clocks(seconds(1));
      answer();
      for (let passed = 0; passed < 120; passed += 1) {
        time.passedMs += minutes(1);
        clock.hear(instant(serverStart + time.passedMs + setMs));
      }
      expect(aheadMs()).toBe(1000);
      time.offMs += setMs;
      clock.hear(instant(serverStart + time.passedMs + setMs));
      clock.hear(instant(serverStart + time.passedMs + setMs));
      expect(aheadMs()).toBe(1000 + setMs);
    },
  );

  it("follows a server from which this machine's clock drifts away", () => {
    const { answer, aheadMs, time } = clocks(0);
    for (let passed = 0; passed < 600; passed += 1) {
      time.passedMs += minutes(1);
      time.offMs += 200;
      answer();
    }
    expect(Math.abs(aheadMs())).toBeLessThanOrEqual(1000);
  });

  it("is slept to by this machine's clock", async () => {
    const { answer, clock, slept } = clocks(minutes(5));
    answer();
    await clock.sleepUntil(plus(clock.now(), seconds(90)));
    expect(slept).toEqual([90_000]);
  });

  it("is not that of a single answer, which may be of a proxy whose clock is wrong", () => {
    const { answer, clock, aheadMs, time } = clocks(0);
    for (let count = 0; count < 3; count += 1) {
      time.passedMs += seconds(1);
      answer();
      clock.hear(plus(clock.now(), hours(2)));
    }
    expect(aheadMs()).toBe(0);
  });
});
