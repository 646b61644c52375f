import { describe, expect, it } from "vitest";
import { between, instant, millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));

function newClock(): VirtualClock {
  return new VirtualClock({ startAt, settle: eventLoopTurn });
}

describe("VirtualClock", () => {
  it("stands still unless it is advanced", async () => {
    const clock = newClock();
    let rang = false;
    void clock.sleep(seconds(1)).then(() => {
      rang = true;
    });
    await eventLoopTurn();
    expect([clock.now(), rang]).toEqual([startAt, false]);
  });

  it("wakes every sleeper at its own time, in order", async () => {
    const clock = newClock();
    const fired: [string, number][] = [];
    for (const [name, span] of [
      ["c", 3],
      ["a", 1],
      ["b", 2],
    ] as const) {
      void clock.sleep(seconds(span)).then(() => fired.push([name, clock.monotonic()]));
    }
    await clock.advance(seconds(3));
    expect(fired).toEqual([
      ["a", 1000],
      ["b", 2000],
      ["c", 3000],
    ]);
  });

  it("wakes sleepers of one instant in the order in which they started to sleep", async () => {
    const clock = newClock();
    const fired: string[] = [];
    for (const name of ["first", "second", "third"]) {
      void clock.sleep(seconds(5)).then(() => fired.push(name));
    }
    await clock.advance(minutes(1));
    expect(fired).toEqual(["first", "second", "third"]);
  });

  it("lets all promises settle before it moves on", async () => {
    const clock = newClock();
    const seen: number[] = [];
    void (async () => {
      await clock.sleep(seconds(1));
      for (let step = 0; step < 50; step += 1) await Promise.resolve();
      seen.push(clock.monotonic());
      await clock.sleep(seconds(1));
      seen.push(clock.monotonic());
    })();
    void clock.sleep(millis(1500));
    await clock.advance(seconds(10));
    expect(seen).toEqual([1000, 2000]);
  });

  it("stops at the given time, and leaves later sleepers asleep", async () => {
    const clock = newClock();
    let rang = false;
    void clock.sleep(seconds(11)).then(() => {
      rang = true;
    });
    await clock.runUntil(plus(startAt, seconds(10)));
    expect([between(startAt, clock.now()), rang]).toEqual([10_000, false]);
    expect(clock.nextDueAt()).toBe(plus(startAt, seconds(11)));
  });

  it("rejects a sleep with the signal's reason as soon as it aborts", async () => {
    const clock = newClock();
    const abort = new AbortController();
    const slept = clock.sleep(seconds(9), abort.signal).catch((reason: unknown) => reason);
    abort.abort("enough");
    expect(await slept).toBe("enough");
    expect(clock.nextDueAt()).toBeUndefined();
    await expect(clock.sleep(seconds(1), abort.signal)).rejects.toBe("enough");
  });

  it("wakes a sleepUntil when the wall clock is set past its time, and continues from there", async () => {
    const clock = newClock();
    const woken: [string, number][] = [];
    const wakes = (name: string) => () => void woken.push([name, clock.monotonic()]);
    void clock.sleepUntil(plus(startAt, seconds(60))).then(wakes("until 60"));
    void clock.sleepUntil(plus(startAt, seconds(200))).then(wakes("until 200"));
    void clock.sleep(seconds(100)).then(wakes("for 100"));
    await clock.advance(seconds(5));
    clock.setForward(seconds(90));
    expect([clock.now(), clock.monotonic()]).toEqual([plus(startAt, seconds(95)), 5000]);
    await clock.runUntil(plus(startAt, seconds(300)));
    expect(woken).toEqual([
      ["until 60", 5000],
      ["for 100", 100_000],
      ["until 200", 110_000],
    ]);
    expect([clock.now(), clock.monotonic()]).toEqual([plus(startAt, seconds(300)), 210_000]);
  });

  it("reports whether a condition became true in time", async () => {
    const clock = newClock();
    let done = false;
    void clock.sleep(seconds(30)).then(() => {
      done = true;
    });
    expect(await clock.runUntilDone(() => done, plus(startAt, seconds(29)))).toBe(false);
    expect(await clock.runUntilDone(() => done, plus(startAt, seconds(60)))).toBe(true);
    expect(clock.monotonic()).toBe(30_000);
  });

  it("keeps ten thousand timers in order", async () => {
    const clock = newClock();
    const fired: number[] = [];
    for (let index = 0; index < 10_000; index += 1) {
      void clock.sleep(millis((index * 7919) % 1000)).then(() => fired.push(clock.monotonic()));
    }
    await clock.advance(seconds(1));
    expect(fired).toHaveLength(10_000);
    expect(fired).toEqual(fired.toSorted((a, b) => a - b));
  });
});
