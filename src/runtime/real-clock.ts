import type { Clock } from "../contracts/clock.ts";
import { type Instant, instant, type Millis } from "../core/time/time.ts";

/** The longest span of a Node timer; a longer sleep is split into parts. */
const longestTimerMs = 2_147_483_647;

/** How often the wall clock is checked for a step while anything sleeps until an instant. */
const checkEveryMs = 1000;
/** A smaller difference is not a step, because reading both clocks takes a moment. */
const smallestStepMs = 50;

interface InstantSleeper {
  readonly at: Instant;
  /** Monotonic: the end of the original span. */
  readonly latestMs: number;
  readonly wake: () => void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Sleeps until instants of wall-clock time. Timers do not follow that clock: if NTP steps it, or
 * the machine was suspended, all timers are set again. One interval checks the clock for all
 * sleepers.
 */
class InstantSleepers {
  readonly #sleepers = new Set<InstantSleeper>();
  #checks: NodeJS.Timeout | undefined;
  /** The wall clock minus the monotonic one. */
  #distanceMs = 0;

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = (): void => {
        this.#leave(sleeper);
        reject(signal?.reason);
      };
      const wake = (): void => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const latestMs = performance.now() + Math.max(0, at - Date.now());
      const sleeper: InstantSleeper = { at, latestMs, wake, timer: undefined };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#enter(sleeper);
    });
  }

  #enter(sleeper: InstantSleeper): void {
    if (this.#sleepers.size === 0) {
      this.#distanceMs = Date.now() - performance.now();
      this.#checks = setInterval(() => this.#check(), checkEveryMs);
    }
    this.#sleepers.add(sleeper);
    this.#setTimer(sleeper);
  }

  #leave(sleeper: InstantSleeper): void {
    clearTimeout(sleeper.timer);
    this.#sleepers.delete(sleeper);
    if (this.#sleepers.size === 0) clearInterval(this.#checks);
  }

  /** A timer may end before the clock is there: Node.js cuts its span to whole milliseconds. */
  #setTimer(sleeper: InstantSleeper): void {
    const spanMs = Math.min(Math.max(0, Math.ceil(leftMs(sleeper))), longestTimerMs);
    sleeper.timer = setTimeout(() => {
      if (leftMs(sleeper) > 0) return this.#setTimer(sleeper);
      this.#leave(sleeper);
      sleeper.wake();
    }, spanMs);
  }

  #check(): void {
    const distanceMs = Date.now() - performance.now();
    if (Math.abs(distanceMs - this.#distanceMs) < smallestStepMs) return;
    this.#distanceMs = distanceMs;
    for (const sleeper of this.#sleepers) {
      clearTimeout(sleeper.timer);
      this.#setTimer(sleeper);
    }
  }
}

function leftMs({ at, latestMs }: InstantSleeper): number {
  return Math.min(at - Date.now(), latestMs - performance.now());
}

const instantSleepers = new InstantSleepers();

/** The machine's own clock. */
export const realClock: Clock = {
  now(): Instant {
    return instant(Date.now());
  },
  monotonic(): number {
    return performance.now();
  },
  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return sleepReal(span, signal);
  },
  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return instantSleepers.sleepUntil(at, signal);
  },
};

async function sleepReal(span: number, signal?: AbortSignal): Promise<void> {
  for (let left = span; left > longestTimerMs; left -= longestTimerMs) {
    await sleepOnce(longestTimerMs, signal);
  }
  await sleepOnce(span % longestTimerMs, signal);
}

function sleepOnce(spanMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      Math.max(0, spanMs),
    );
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Resolves once everything that can proceed without waiting for time or I/O has done so. */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
