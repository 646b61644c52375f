import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";

const longestMs: Millis = seconds(10);
const longestUnderNoticeMs: Millis = seconds(1);

/** How long to wait at most before another attempt: under a notice each second counts. */
export function longestPause(departure: Departure): Millis {
  return isNoticed(departure) ? longestUnderNoticeMs : longestMs;
}

export interface RetryOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly signal: AbortSignal;
  /** Between two attempts; asked before each, since a notice may have come. Default 10 s. */
  readonly longestPause?: (() => Millis) | undefined;
  /** Asked of each fault that could be tried again: whether that has gone on for long enough. */
  readonly isEnough?: ((error: LastcallError) => boolean) | undefined;
  /** Told of each fault that is tried again. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Tries until it works, the signal aborts, it is enough, or a fault comes that trying again cannot
 * mend.
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
