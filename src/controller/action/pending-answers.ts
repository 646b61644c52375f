import type { Clock } from "../../contracts/clock.ts";
import type { Millis } from "../../core/time/time.ts";

/** The requests of one kind, of all runs, that are sent and not answered: cordons, evictions. */
export class PendingAnswers {
  #count = 0;
  /** There were several at a time, and some are left of them. */
  #isBurst = false;
  #allAnswered = Promise.withResolvers<void>();

  /** Counts a request as pending until it is answered. */
  async during<T>(request: () => Promise<T>): Promise<T> {
    this.#count += 1;
    if (this.#count > 1) this.#isBurst = true;
    try {
      return await request();
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
   * Resolves when none is pending any more, or after so long: what begins in a burst of notices
   * takes the processor that these requests need. With one alone nobody is in the way.
   */
  async answered(
    { clock, limitMs }: { readonly clock: Clock; readonly limitMs: Millis },
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#isBurst) return;
    const over = new AbortController();
    const late = clock.sleep(limitMs, AbortSignal.any([signal, over.signal]));
    // Once the race is decided, a rejection of the other would have no handler.
    late.catch(() => undefined);
    try {
      await Promise.race([this.#allAnswered.promise, late]);
    } finally {
      over.abort();
    }
  }
}
