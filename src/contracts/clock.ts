import type { Instant, Millis } from "../core/time/time.ts";

/** Wall time for deadlines that clouds name, monotonic time for measuring. */
export interface Clock {
  now(): Instant;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonic(): number;
  /** Resolves after `span`, or rejects with the signal's reason as soon as it aborts. */
  sleep(span: Millis, signal?: AbortSignal): Promise<void>;
  /**
   * The same until an instant of wall time: where that is set forward meanwhile it ends within a
   * second of it. Where it is set back, after the span that there was at first.
   */
  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void>;
}
