import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis } from "../../core/time/time.ts";

/** How long an action yields to cordons at most: traffic has to be moved away as well. */
const longestBehindMs: Millis = millis(300);

/** The cordons of all departures that have been requested but not answered. */
export class PendingCordons {
  readonly #clock: Clock;
  #count = 0;
  /** Several cordons were pending at once, and not all have been answered. */
  #isBurst = false;
  #allAnswered = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a cordon as pending until it is answered. */
  async during<T>(cordon: () => Promise<T>): Promise<T> {
    this.#count += 1;
    if (this.#count > 1) this.#isBurst = true;
    try {
      return await cordon();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) {
        this.#isBurst = false;
        this.#allAnswered.resolve();
        this.#allAnswered = Promise.withResolvers();
      }
    }
  }

  /**
   * Resolves when no cordon is pending, or after a while: in a burst of notices, actions would take
   * the CPU time that the cordons need. A single cordon is not delayed by them.
   */
  async answered(signal: AbortSignal): Promise<void> {
    if (!this.#isBurst) return;
    const over = new AbortController();
    const late = this.#clock.sleep(longestBehindMs, AbortSignal.any([signal, over.signal]));
    // Once the race is decided, a rejection of the other promise would have no handler.
    late.catch(() => undefined);
    try {
      await Promise.race([this.#allAnswered.promise, late]);
    } finally {
      over.abort();
    }
  }
}
