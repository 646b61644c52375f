import type { Clock } from "../contracts/clock.ts";
import type { Millis } from "../core/time/time.ts";

/** Wakes one loop: a ring that came while nobody waited is heard at the next wait. */
export class Bell {
  readonly #clock: Clock;
  #rung = false;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wake();
  }

  /** Resolves at the next ring, after `span` at the latest, or when the signal aborts. */
  async wait(span: Millis | undefined, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController();
    const end = (): void => waiting.abort();
    this.#wake = end;
    signal.addEventListener("abort", end, { once: true });
    if (this.#rung || signal.aborted) end();
    try {
      await this.#sleep(span, waiting.signal);
    } finally {
      this.#rung = false;
      this.#wake = () => {};
      signal.removeEventListener("abort", end);
    }
  }

  async #sleep(span: Millis | undefined, signal: AbortSignal): Promise<void> {
    if (span === undefined) {
      if (signal.aborted) return;
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      return;
    }
    await this.#clock.sleep(span, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}
