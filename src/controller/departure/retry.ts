import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";

const longestMs: Millis = seconds(10);
const longestUnderNoticeMs: Millis = seconds(1);

/** The longest pause between attempts: under a notice every second counts. */
export function longestPause(departure: Departure): Millis {
  return isNoticed(departure) ? longestUnderNoticeMs : longestMs;
}

export interface RetryOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly signal: AbortSignal;
  /** The longest pause, evaluated before each since a notice may arrive. Default 10 s. */
  readonly longestPause?: (() => Millis) | undefined;
  /** Whether to stop retrying after this retryable error. */
  readonly isEnough?: ((error: LastcallError) => boolean) | undefined;
  /** Called for each error that is retried. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Retries until `work` succeeds, the signal aborts, `isEnough` returns true, or an error is not
 * retryable.
 */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    options.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isLastcallError(error) || !error.retryable || options.isEnough?.(error)) throw error;
      options.onRetry(error);
      const mostMs = options.longestPause?.();
      await options.clock.sleep(backoffMs(attempt, options.rng, { mostMs }), options.signal);
    }
  }
}
