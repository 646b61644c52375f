import type { Clock } from "../contracts/clock.ts";
import type { Millis } from "../core/time.ts";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /** The reason to abort with when the time is up. */
  readonly onTime: () => Error;
  /** The caller's own signal and what to abort with when it does. */
  readonly signal?: AbortSignal | undefined;
  readonly onAbort: (reason: unknown) => Error;
}

/** A signal that aborts when the time is up or the caller's signal does; `end` lets go of both. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  readonly #over = new AbortController();
  readonly #options: DeadlineOptions;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    this.signal = this.#stop.signal;
    if (options.signal?.aborted) this.#aborted();
    options.signal?.addEventListener("abort", this.#aborted);
    options.clock.sleep(options.limitMs, this.#over.signal).then(
      () => this.#stop.abort(options.onTime()),
      () => {},
    );
  }

  end(): void {
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    this.#over.abort();
  }

  readonly #aborted = () => {
    this.#stop.abort(this.#options.onAbort(this.#options.signal?.reason));
  };
}
