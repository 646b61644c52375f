import type { Clock } from "../contracts/clock.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { Sampler } from "../core/chance/sampler.ts";
import { isLastcallError } from "../errors.ts";

/** Counts every trouble and logs a sample. */
export class TroubleLog {
  readonly #tools: {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: Pick<Metrics, "count">;
  };
  readonly #sampler = new Sampler();

  constructor(tools: {
    readonly clock: Clock;
    readonly log: Log;
    readonly metrics: Pick<Metrics, "count">;
  }) {
    this.#tools = tools;
  }

  /** `place` is one of a few: a channel, or the cluster. */
  report(place: string, error: Error): void {
    const { clock, log, metrics } = this.#tools;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    const admitted = this.#sampler.admit(`${place} ${code}`, clock.monotonic());
    if (admitted !== undefined)
      log.warn("trouble", { place, code, error: error.message, ...admitted });
  }
}
