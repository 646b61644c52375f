import type { Instant, Millis } from "../core/time/time.ts";

/** Wall-clock time for deadlines, monotonic time for measuring. */
export interface Clock {
  now(): Instant;
  /** Milliseconds since an arbitrary start; never decreases. */
  monotonic(): number;
  /** Resolves after `span`, or rejects with the signal's reason as soon as it aborts. */
  sleep(span: Millis, signal?: AbortSignal): Promise<void>;
  /**
   * Sleeps until an instant of wall-clock time. If that clock is set forward meanwhile, resolves
   * within a second of reaching the instant; if it is set back, resolves after the original span.
   */
  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void>;
}
