import type { Clock } from "../../contracts/clock.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { mostFailingMs } from "../../core/next/given-up.ts";
import { isHurried, longestPause } from "../../core/next/retry-pause.ts";
import { isAway, type RequestFault } from "../../core/next/scene.ts";
import { type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import type { DepartureOptions } from "./departure-options.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { OpenState } from "./open-state.ts";

/** What was refused is asked again after this while the departure may be given up for it. */
const refusedAgainMs: Millis = seconds(20);

/** The same if it is not given up: in a release, and in a roll-back. */
const restMs: Millis = minutes(1);

/** How long something fails that may pass, before an Event tells of it; and how often it does. */
const announcedAfterMs: Millis = minutes(1);
const announcedEveryMs: Millis = minutes(30);

/** A fault that goes on. */
interface Failing {
  readonly fault: RequestFault;
  /** Monotonic. */
  readonly sinceMs: number;
}

/**
 * Since when something fails (monotonic). An API server that is away refuses nothing, so a refusal
 * counts from its first answer: otherwise the first one after an outage would be the last.
 */
export function failingSince(
  fault: RequestFault,
  { before, nowMs }: { readonly before: Failing | undefined; readonly nowMs: number },
): number {
  return before !== undefined && isAway(before.fault) === isAway(fault) ? before.sinceMs : nowMs;
}

/** An error as data. */
export function faultOf(error: unknown): RequestFault {
  const message = messageOf(error);
  if (!isLastcallError(error)) return { code: "UNEXPECTED", message, retryable: false };
  return { code: error.code, message, retryable: error.retryable };
}

/** How long what failed rests, and how people learn of it. */
export class Refusals {
  readonly #options: Pick<DepartureOptions, "log" | "metrics"> & {
    readonly clock: Clock;
    readonly rng: Rng;
  };
  readonly #state: OpenState;
  readonly #telemetry: DepartureTelemetry;
  /** When an Event told last (monotonic). */
  #announcedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DepartureOptions, state: OpenState, telemetry: DepartureTelemetry) {
    this.#options = options;
    this.#state = state;
    this.#telemetry = telemetry;
  }

  /** `mostMs` is the longest pause while it is tried on. */
  pauseAfter(fault: RequestFault, attempts: number, mostMs?: Millis): Millis {
    const { seen } = this.#state;
    const { clock, rng } = this.#options;
    const isTriedOn = fault.retryable || isHurried(seen, clock.now());
    if (!isTriedOn) return this.#mayBeGivenUp ? refusedAgainMs : restMs;
    return backoffMs(attempts - 1, rng, { mostMs: mostMs ?? longestPause(seen, clock.now()) });
  }

  /** An error that the departure may be given up for: that tells of it. */
  tell(error: unknown, sinceMs: number): void {
    if (this.#mayBeGivenUp) this.#telemetry.faulted("retrying", this.#state.seen, error);
    else this.tellAlways(error, sinceMs);
  }

  /** An error that nothing gives up: Events tell of it until it is resolved. */
  tellAlways(error: unknown, sinceMs: number): void {
    const { seen } = this.#state;
    const { metrics, log, clock } = this.#options;
    const fault = faultOf(error);
    const { code, message, retryable } = fault;
    if (retryable) this.#telemetry.faulted("retrying", seen, error);
    else {
      metrics.count("lastcall_errors_total", { code });
      log.error("departure-failed", { departure: seen.name, code, error: message });
    }
    const nowMs = clock.monotonic();
    const isNew = retryable && nowMs - sinceMs < announcedAfterMs;
    // An API server that is away takes no Event, either.
    if (isNew || isAway(fault) || nowMs < this.#announcedMs + announcedEveryMs) return;
    this.#announcedMs = nowMs;
    this.#telemetry.refused(seen, message);
  }

  get #mayBeGivenUp(): boolean {
    return mostFailingMs(this.#state.effective, this.#state.policy) !== undefined;
  }
}
