import type { Clock } from "../contracts/clock.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { isLastcallError } from "../errors.ts";

/** The same trouble at the same place is logged again after this long. */
const everyMs = 60_000;

/**
 * Counts every trouble and logs a sample: a metadata service that is away for an hour is one line a
 * minute, not one a second.
 */
export class TroubleLog {
  readonly #tools: {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: Pick<Metrics, "count">;
  };
  readonly #last = new Map<string, { atMs: number; unsaid: number }>();

  constructor(tools: {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: Pick<Metrics, "count">;
  }) {
    this.#tools = tools;
  }

  /** `place` is one of a few: a channel, or the cluster. */
  tell(place: string, error: Error): void {
    const { clock, log, metrics } = this.#tools;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    const key = `${place} ${code}`;
    const last = this.#last.get(key);
    const nowMs = clock.monotonic();
    if (last !== undefined && nowMs - last.atMs < everyMs) {
      last.unsaid += 1;
      return;
    }
    const more = last === undefined || last.unsaid === 0 ? undefined : last.unsaid;
    log.warn("trouble", { place, code, error: error.message, alsoSince: more });
    this.#last.set(key, { atMs: nowMs, unsaid: 0 });
  }
}
