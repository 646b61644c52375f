import type { Clock } from "../contracts/clock.ts";
import type { CounterName, Log, MetricLabels, Metrics } from "../contracts/telemetry.ts";
import { Sampler } from "../core/chance/sampler.ts";
import { minutes } from "../core/time/time.ts";
import { isLastcallError } from "../errors.ts";

/** A loop without progress for this long is stuck. The longest round is Azure's first, 135 s. */
const stalledMs = minutes(4);

/** Whether the agent's loops are alive, whatever else is down. */
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

  /** Called when a loop has finished, such as the detection of the cloud. */
  ended(loop: string): void {
    this.#turns.delete(loop);
  }

  /** The problem in a sentence; undefined if healthy. */
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

/** Counts all errors and logs a sample of them. */
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

  /** `place` has few values: a channel, or the cluster. */
  report(place: string, error: Error): void {
    const { clock, log, metrics } = this.#tools;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    metrics.count("lastcall_errors_total", { code });
    const admitted = this.#sampler.admit(`${place} ${code}`, clock.monotonic());
    if (admitted !== undefined)
      log.warn("agent-error", { place, code, error: error.message, ...admitted });
  }
}

/**
 * The agent's counters in the Prometheus text format (0.0.4). The official client needs 8 MiB, a
 * quarter of the agent's memory budget, and the agent has no histograms.
 */
export class AgentMetrics implements Pick<Metrics, "count"> {
  readonly #series = new Map<string, { readonly name: CounterName; value: number }>();

  count(name: CounterName, labels: MetricLabels): void {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
    const key = `${name}{${pairs.join(",")}}`;
    const series = this.#series.get(key);
    if (series === undefined) this.#series.set(key, { name, value: 1 });
    else series.value += 1;
  }

  exposition(): string {
    const lines: string[] = [];
    const byName = Map.groupBy(this.#series, ([, { name }]) => name);
    for (const [name, all] of byName) {
      lines.push(`# TYPE ${name} counter`);
      for (const [key, { value }] of all) lines.push(`${key} ${value}`);
    }
    return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
  }
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
