import type { Clock } from "../../contracts/clock.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import type { Millis } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";

export interface WriteRetriesOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** The longest pause, asked before each: a notice may have arrived. */
  readonly longestPause: () => Millis;
  /** How long writes may fail before that is an error; undefined: for ever. */
  readonly mostMs: () => Millis | undefined;
  /** Called for each error that is retried. */
  readonly onRetry: (error: unknown) => void;
}

/** Retries a write until it succeeds, the signal aborts, or it has failed for too long. */
export type WriteRetries = <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Errors that are not retryable are not retried. */
export function writeRetries(options: WriteRetriesOptions): WriteRetries {
  const { clock, rng, longestPause, mostMs, onRetry } = options;
  return async (work, signal) => {
    const sinceMs = clock.monotonic();
    for (let attempt = 0; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        const isOver = clock.monotonic() - sinceMs >= (mostMs() ?? Number.POSITIVE_INFINITY);
        if (!isLastcallError(error) || !error.retryable || isOver) throw error;
        onRetry(error);
        await clock.sleep(backoffMs(attempt, rng, { mostMs: longestPause() }), signal);
      }
    }
  };
}
