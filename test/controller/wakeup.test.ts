import { beforeEach, describe, expect, it } from "vitest";
import { Wakeup } from "../../src/contracts/clock.ts";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { dawn } from "../support/model-world.ts";

const never = new AbortController().signal;
let clock: VirtualClock;
let wakeup: Wakeup;

beforeEach(() => {
  clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
  wakeup = new Wakeup(clock);
});

describe("a wake-up", () => {
  it("ends a sleep at once", async () => {
    const sleeping = wakeup.sleep(undefined, never);
    wakeup.wake();
    expect(await sleeping).toBe("Woken");
    expect(clock.now()).toBe(dawn);
  });

  it("between two sleeps ends only the next one", async () => {
    wakeup.wake();
    wakeup.wake();
    expect(await wakeup.sleep(undefined, never)).toBe("Woken");
    const sleeping = wakeup.sleep(seconds(5), never);
    await clock.advance(seconds(5));
    expect(await sleeping).toBe("Time");
  });
});

describe("a sleep until an instant", () => {
  it("ends at that instant", async () => {
    const sleeping = wakeup.sleepUntil(plus(dawn, seconds(5)), never);
    await clock.advance(seconds(5));
    expect(await sleeping).toBe("Time");
  });

  it("ends when the wall clock is set past it, unlike any other sleep", async () => {
    const sleeping = wakeup.sleepUntil(plus(dawn, minutes(2)), never);
    const other = new Wakeup(clock);
    let ended: string | undefined;
    void other.sleep(minutes(2), never).then((by) => {
      ended = by;
    });
    await clock.advance(seconds(10));
    clock.setForward(minutes(3));
    await clock.advance(seconds(1));
    expect(await sleeping).toBe("Time");
    expect(ended).toBeUndefined();
    await clock.advance(seconds(109));
    expect(ended).toBe("Time");
  });

  it("rejects with the reason of an abort, before or during the sleep", async () => {
    const stop = new AbortController();
    const sleeping = wakeup.sleepUntil(undefined, stop.signal);
    stop.abort(new Error("over"));
    await expect(sleeping).rejects.toThrow("over");
    await expect(wakeup.sleepUntil(undefined, stop.signal)).rejects.toThrow("over");
  });
});
