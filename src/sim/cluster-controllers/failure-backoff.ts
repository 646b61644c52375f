import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";

const firstWait = seconds(1);
const longestWait = minutes(15);

interface Entry {
  readonly triedMs: number;
  readonly wait: Millis;
}

/**
 * How long to leave something alone that failed again: a second at first, twice as long after each
 * failure, a quarter of an hour at most; forgotten after twice that.
 * Source: client-go `util/flowcontrol/backoff.go`, as the DaemonSet controller uses it.
 */
export class FailureBackoff {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What is left to wait; undefined where a try may be made, which then counts as made. */
  tryNow(key: string): Millis | undefined {
    const nowMs = this.#clock.monotonic();
    const entry = this.#entries.get(key);
    if (entry === undefined || nowMs - entry.triedMs > 2 * longestWait) {
      this.#entries.set(key, { triedMs: nowMs, wait: firstWait });
      return undefined;
    }
    const leftMs = entry.triedMs + entry.wait - nowMs;
    if (leftMs > 0) return millis(leftMs);
    this.#entries.set(key, { triedMs: nowMs, wait: millis(Math.min(longestWait, entry.wait * 2)) });
    return undefined;
  }
}
