import type { Clock } from "../contracts/clock.ts";
import type {
  HttpRequest,
  HttpStream,
  RouteAnswer,
  StreamClient,
} from "../contracts/http-route.ts";
import type { MachineNotice } from "../core/notice/notice.ts";
import { between, formatInstant, type Millis, millis, minus, seconds } from "../core/time/time.ts";

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
    const before = textOf(this.#notice);
    this.#notice = notice;
    if (textOf(notice) !== before) this.#sendAll(this.#event());
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
function textOf(notice: MachineNotice | undefined): string {
  return JSON.stringify([notice?.cause, notice?.source, notice?.noticedAt, notice?.deadlineAt]);
}
