import { halfToAll } from "../core/chance/backoff.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { Millis } from "../core/time/time.ts";

export interface BackoffOptions {
  readonly rng: Rng;
  /** Default 100 ms. */
  readonly firstMs?: Millis | undefined;
  /** Default 10 s. */
  readonly mostMs?: Millis | undefined;
}

/**
 * Waits that double from `firstMs` to `mostMs`, each shortened by chance to between its half and
 * its whole, so that many clients of a server that comes back do not come back in step.
 */
export class Backoff {
  readonly #rng: Rng;
  readonly #firstMs: number;
  readonly #mostMs: number;
  #failures = 0;

  constructor({ rng, firstMs, mostMs }: BackoffOptions) {
    this.#rng = rng;
    this.#firstMs = firstMs ?? 100;
    this.#mostMs = mostMs ?? 10_000;
  }

  /** The wait after one more failure. */
  next(): Millis {
    const wholeMs = Math.min(this.#mostMs, this.#firstMs * 2 ** this.#failures);
    if (wholeMs < this.#mostMs) this.#failures += 1;
    return halfToAll(wholeMs, this.#rng);
  }

  reset(): void {
    this.#failures = 0;
  }
}
