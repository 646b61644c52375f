import type { Clock } from "../contracts/clock.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { Sampler } from "../core/chance/sampler.ts";
import { minutes } from "../core/time/time.ts";
import { isLastcallError } from "../errors.ts";

/** The longest turn is Azure's first, 135 s; after this long a loop hangs. */
const stalledMs = minutes(4);

/** Whether the loops of the agent run. An outage of anything else does not count. */
export class AgentHealth {
  readonly #clock: Clock;
  readonly #turns = new Map<string, number>();
  readonly #heard = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  turned(loop: string): void {
    this.#turns.set(loop, this.#clock.monotonic());
  }

  heard(channel: string): void {
    this.#heard.add(channel);
  }

  /** A loop that has come to its end, such as the search for the cloud. */
  ended(loop: string): void {
    this.#turns.delete(loop);
  }

  /** One sentence; undefined while all is well. */
  problem(): string | undefined {
    const nowMs = this.#clock.monotonic();
    for (const [loop, turnedMs] of this.#turns) {
      if (nowMs - turnedMs > stalledMs) {
        return `the loop ${loop} has been stuck for ${Math.round((nowMs - turnedMs) / 1000)} s`;
      }
    }
    return undefined;
  }

  /** Ready once the metadata service has answered. */
  ready(): boolean {
    return this.#heard.size > 0;
  }
}

/** Counts every trouble and logs a sample. */
export class ErrorLog {
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
      log.warn("agent-error", { place, code, error: error.message, ...admitted });
  }
}
