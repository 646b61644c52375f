import type { Clock } from "../../contracts/clock.ts";
import { type Departure, isNoticed, isVoluntary } from "../../core/departure/departure.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { type Millis, minutes } from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";
import { type RetryOptions, retrying, type StepContext } from "./step.ts";

/** Before the drain there is nothing to lose: the node is planned again. */
const startFailingMs: Millis = minutes(1);

/**
 * How long requests of the current phase may fail before the departure is given up; undefined:
 * without a limit. Under a notice nothing is given up, and neither is a release or a roll-back,
 * which would leave the node cordoned.
 */
export function mostFailingMs(departure: Departure, { drain }: Policy): Millis | undefined {
  if (!isVoluntary(departure.cause) || isNoticed(departure)) return undefined;
  const { phase } = departure.status;
  if (phase === "Preparing") return startFailingMs;
  return phase === "Draining" ? drain.timeoutMs : undefined;
}

/** Since when requests fail. */
export class Failing {
  readonly #clock: Clock;
  #sinceMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begins(): void {
    this.#sinceMs ??= this.#clock.monotonic();
  }

  ends(): void {
    this.#sinceMs = undefined;
  }

  /** Whether they have failed for this long; never without a limit. */
  lasts(mostMs: Millis | undefined): boolean {
    if (mostMs === undefined || this.#sinceMs === undefined) return false;
    return this.#clock.monotonic() - this.#sinceMs >= mostMs;
  }
}

/**
 * Retries requests of one departure until they have failed for as long as its phase allows, and
 * remembers the errors that ended them so.
 */
export class RequestRetries {
  readonly #exhausted = new WeakSet<object>();
  readonly #options: RetriesOptions;

  constructor(options: RetriesOptions) {
    this.#options = options;
  }

  /** Whether the error comes from a request that was retried for long enough. */
  isExhausted(error: LastcallError): boolean {
    return this.#exhausted.has(error);
  }

  readonly retry: StepContext["retry"] = (work, signal, isEnough) => {
    const { clock, rng, limitMs, longestPause, onRetry } = this.#options;
    const failing = new Failing(clock);
    return retrying(work, {
      ...{ clock, rng, signal, longestPause },
      isEnough: (error) => {
        if (!failing.lasts(limitMs())) return isEnough?.(error) === true;
        this.#exhausted.add(error);
        return true;
      },
      onRetry: (error) => {
        failing.begins();
        onRetry(error);
      },
    });
  };
}

interface RetriesOptions extends Pick<RetryOptions, "clock" | "rng" | "longestPause" | "onRetry"> {
  /** How long requests of the current phase may fail. */
  readonly limitMs: () => Millis | undefined;
}
