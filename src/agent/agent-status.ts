import type { Clock } from "../contracts/clock.ts";
import type {
  HttpRequest,
  HttpStream,
  RouteAnswer,
  StreamClient,
} from "../contracts/http-route.ts";
import type { CounterName, Log, MetricLabels, Metrics } from "../contracts/telemetry.ts";
import { Sampler } from "../core/chance/chance.ts";
import type { MachineNotice } from "../core/notice/notice.ts";
import {
  between,
  formatInstant,
  type Millis,
  millis,
  minus,
  minutes,
  seconds,
} from "../core/time/time.ts";
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

  count(name: CounterName, labels: MetricLabels, by = 1): void {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
    const key = `${name}{${pairs.join(",")}}`;
    const series = this.#series.get(key);
    if (series === undefined) this.#series.set(key, { name, value: by });
    else series.value += by;
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

/** The most applications that may listen; any further one has to retry later. */
const mostClients = 64;

/** Shorter than the minute after which proxies and Bun's server close an idle connection. */
const keepAliveMs: Millis = seconds(15);

/**
 * Serves the active notice of this machine to the applications on it: as JSON, or as server-sent
 * events, the current state first and then each change. It does not reveal event ids, with which an
 * application could send the cloud an acknowledgement.
 */
export class NoticeServer {
  readonly #clock: Clock;
  readonly #clients = new Set<StreamClient>();
  #notice: MachineNotice | undefined;
  #skewMs: Millis = millis(0);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  show(notice: MachineNotice | undefined, skewMs: Millis): void {
    this.#skewMs = skewMs;
    const before = noticeText(this.#notice);
    this.#notice = notice;
    if (noticeText(notice) !== before) this.#sendAll(this.#event());
  }

  answer({ accept }: HttpRequest): RouteAnswer | HttpStream {
    if (!accept.includes("text/event-stream")) {
      return { status: 200, type: "application/json", text: `${this.#json()}\n` };
    }
    if (this.#clients.size >= mostClients) {
      return { status: 503, text: `${mostClients} clients are already connected\n` };
    }
    return { type: "text/event-stream", open: (client) => this.#join(client) };
  }

  /** Sends keep-alives until the signal aborts, so that clients and proxies see a live stream. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(keepAliveMs, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      this.#sendAll(": keep-alive\n\n");
    }
  }

  #join(client: StreamClient): () => void {
    this.#clients.add(client);
    client.send(`retry: 1000\n${this.#event()}`);
    return () => this.#clients.delete(client);
  }

  #sendAll(text: string): void {
    for (const client of this.#clients) client.send(text);
  }

  #event(): string {
    return `event: notice\ndata: ${this.#json()}\n\n`;
  }

  #json(): string {
    if (this.#notice === undefined) return JSON.stringify({ notice: null });
    const { cause, deadlineAt, noticedAt, source } = this.#notice;
    const nowAt = minus(this.#clock.now(), this.#skewMs);
    const left = deadlineAt === undefined ? null : between(nowAt, deadlineAt) / 1000;
    return JSON.stringify({
      notice: {
        ...{ cause, source, noticedAt: formatInstant(noticedAt) },
        deadlineAt: deadlineAt === undefined ? null : formatInstant(deadlineAt),
        secondsLeft: left === null ? null : Math.max(0, left),
      },
    });
  }
}

/** What a client would receive, except for the seconds left. */
function noticeText(notice: MachineNotice | undefined): string {
  return JSON.stringify([notice?.cause, notice?.source, notice?.noticedAt, notice?.deadlineAt]);
}
