import type { Clock } from "../contracts/clock.ts";
import { between, type Instant } from "../core/time/time.ts";

/** A reason of our own: the default one takes a stack trace each time. */
const awake = "awake";

/**
 * What a loop sleeps on: it wakes when rung or when an instant is reached, whichever is first. A
 * ring between two waits is not lost.
 */
export class Alarm {
  readonly #clock: Clock;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Tells what it woke of. Rejects with the signal's reason when it aborts. */
  async wait(until: Instant | undefined, signal: AbortSignal): Promise<"Rung" | "Time"> {
    signal.throwIfAborted();
    if (!this.#rung) await this.#sleep(until, signal);
    const woken = this.#rung ? "Rung" : "Time";
    this.#rung = false;
    return woken;
  }

  async #sleep(until: Instant | undefined, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const rung = new Promise<void>((resolve, reject) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => reject(signal.reason), {
        once: true,
        signal: woken.signal,
      });
    });
    const sleeps = [rung];
    if (until !== undefined) {
      const span = between(this.#clock.now(), until);
      // The sleep is called off when the ring comes first; that it then rejects is no fault.
      const timer = this.#clock.sleep(span, woken.signal).catch(() => undefined);
      sleeps.push(timer);
    }
    try {
      await Promise.race(sleeps);
    } finally {
      this.#wake = undefined;
      woken.abort(awake);
    }
  }
}
