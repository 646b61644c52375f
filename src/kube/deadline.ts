import type { Clock } from "../contracts/clock.ts";
import type { Millis } from "../core/time/time.ts";

/** A reason of our own: the default one takes a stack trace each time. */
const over = "over";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /** The reason to abort with when the time is up, whose length it is told. */
  readonly onTime: (limitMs: Millis) => Error;
  /** The caller's own signal and what to abort with when it does. */
  readonly signal?: AbortSignal | undefined;
  readonly onAbort: (reason: unknown) => Error;
}

/** A signal that aborts when the time is up or the caller's signal does; `end` lets go of both. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  #over = new AbortController();
  readonly #options: DeadlineOptions;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    this.signal = this.#stop.signal;
    if (options.signal?.aborted) this.#aborted();
    options.signal?.addEventListener("abort", this.#aborted);
    this.#count(options.limitMs);
  }

  /** Another limit from now on, which counts from now. */
  renew(limitMs: Millis): void {
    this.#over.abort(over);
    this.#over = new AbortController();
    this.#count(limitMs);
  }

  end(): void {
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    this.#over.abort(over);
  }

  #count(limitMs: Millis): void {
    const { clock, onTime } = this.#options;
    clock.sleep(limitMs, this.#over.signal).then(
      () => this.#stop.abort(onTime(limitMs)),
      () => {},
    );
  }

  readonly #aborted = () => {
    this.#stop.abort(this.#options.onAbort(this.#options.signal?.reason));
  };
}
