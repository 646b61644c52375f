import type { Clock } from "../contracts/clock.ts";
import type { Millis } from "../core/time/time.ts";

/** A sleep that can be ended early. A wake-up before the sleep counts: none is ever missed. */
export class Wakeup {
  readonly #clock: Clock;
  #isDue = false;
  #sleeper: AbortController | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#isDue = true;
    this.#sleeper?.abort();
  }

  /** Returns after `span`, a wake-up or the signal's abort, whichever is first; never rejects. */
  async sleep(span: Millis, signal: AbortSignal): Promise<void> {
    if (!this.#isDue && !signal.aborted) {
      this.#sleeper = new AbortController();
      const either = AbortSignal.any([this.#sleeper.signal, signal]);
      await this.#clock.sleep(span, either).catch(() => {});
    }
    this.#sleeper = undefined;
    this.#isDue = false;
  }
}
