import type { Clock } from "../contracts/clock.ts";
import { type Instant, instant, type Millis } from "../core/time/time.ts";

/** Timers of Node hold at most this span; a longer sleep is slept in parts. */
const longestTimerMs = 2_147_483_647;

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

/** Resolves once everything that could go on without waiting for time or I/O has gone on. */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
