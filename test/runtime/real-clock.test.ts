import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { instant, millis, plus } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

const startMs = Date.UTC(2026, 10, 20, 12);

beforeEach(() => {
  vi.useFakeTimers({ now: startMs });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Records after how long a sleep until 120 s from now ends, in monotonic time. */
function slept(signal?: AbortSignal) {
  const seen = { endedAfterMs: undefined as number | undefined, reason: undefined as unknown };
  const beganMs = performance.now();
  realClock.sleepUntil(instant(startMs + 120_000), signal).then(
    () => {
      seen.endedAfterMs = performance.now() - beganMs;
    },
    (reason: unknown) => {
      seen.reason = reason;
    },
  );
  return seen;
}

/** Sets the wall clock, without any timer running. */
function stepWall(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

describe("a sleep of the real clock until an instant", () => {
  it("ends at that instant", async () => {
    const seen = slept();
    await vi.advanceTimersByTimeAsync(119_999);
    expect(seen.endedAfterMs).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(seen.endedAfterMs).toBe(120_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends at once if the instant has passed", async () => {
    stepWall(120_000);
    const seen = slept();
    await vi.advanceTimersByTimeAsync(1);
    expect(seen.endedAfterMs).toBeLessThanOrEqual(1);
  });

  it.each([
    ["back to before it", 60_000, 60_000],
    ["past it", 600_000, 11_001],
  ])("ends at most a second late if the wall clock steps %s", async (_, stepMs, endsMs) => {
    const seen = slept();
    await vi.advanceTimersByTimeAsync(10_000);
    stepWall(stepMs);
    await vi.advanceTimersByTimeAsync(endsMs - 10_000);
    expect(seen.endedAfterMs).toBeLessThanOrEqual(endsMs);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not made longer by a wall clock that is set back", async () => {
    const seen = slept();
    await vi.advanceTimersByTimeAsync(10_000);
    stepWall(-3_600_000);
    await vi.advanceTimersByTimeAsync(110_000);
    expect(seen.endedAfterMs).toBe(120_000);
  });

  it("rejects with the signal's reason, and leaves no timer", async () => {
    const stop = new AbortController();
    const seen = slept(stop.signal);
    stop.abort("enough");
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.reason).toBe("enough");
    expect(vi.getTimerCount()).toBe(0);
    const later = slept(stop.signal);
    await vi.advanceTimersByTimeAsync(0);
    expect(later.reason).toBe("enough");
  });

  it("may be longer than a timer can be", async () => {
    // A timer lasts 24.8 days at most. The checks, one a second, would be 2.2 million.
    vi.useFakeTimers({
      now: startMs,
      toFake: ["setTimeout", "clearTimeout", "Date", "performance"],
    });
    const days = 25 * 24 * 3_600_000;
    let over = false;
    void realClock.sleepUntil(instant(startMs + days)).then(() => {
      over = true;
    });
    stepWall(millis(0));
    await vi.advanceTimersByTimeAsync(days - 1);
    expect(over).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toBe(true);
  });
});

it("never ends a sleep before its instant, although timers end a little early", async () => {
  vi.useRealTimers();
  const early: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    const until = plus(realClock.now(), millis(3));
    await realClock.sleepUntil(until);
    if (realClock.now() < until) early.push(round);
  }
  expect(early).toEqual([]);
});
