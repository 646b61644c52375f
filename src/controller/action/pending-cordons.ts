import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis } from "../../core/time/time.ts";

/** Traffic has to leave as well: so long an action stands back for cordons at the most. */
const longestBehindMs: Millis = millis(300);

/** The cordons of all runs that are asked for and not answered. */
export class PendingCordons {
  readonly #clock: Clock;
  #count = 0;
  /** There were several at a time, and some are left of them. */
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
   * Resolves when no cordon is pending any more, or after a while: what begins in a burst of
   * notices takes the processor that the cordons need. With one alone nobody is in the way.
   */
  async answered(signal: AbortSignal): Promise<void> {
    if (!this.#isBurst) return;
    const over = new AbortController();
    const late = this.#clock.sleep(longestBehindMs, AbortSignal.any([signal, over.signal]));
    // Once the race is decided, a rejection of the other would have no handler.
    late.catch(() => undefined);
    try {
      await Promise.race([this.#allAnswered.promise, late]);
    } finally {
      over.abort();
    }
  }
}
