import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/cloud/notice-source.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { MetadataClient, type MetadataFetch, refusedError } from "../metadata/metadata-client.ts";
import { type ChannelAnswer, followChannel } from "../metadata/poll-channel.ts";
import { readAzureEvents } from "./notice-payload.ts";

export interface AzureNoticeOptions {
  /** Default `http://169.254.169.254`. */
  readonly baseUrl?: string | undefined;
  readonly fetch: MetadataFetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

const channel = "azure/scheduled-events";
const headers = { metadata: "true" };
const eventsPath = "/metadata/scheduledevents?api-version=2020-07-01";
const namePath = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

/** The first call switches the service on for this machine, which takes up to two minutes. */
const firstTimeoutMs = seconds(130);
const timeoutMs = seconds(5);

/**
 * Azure's Scheduled Events, asked for every second. All machines of a scale set's placement group
 * hear of each other's events; only those that name this machine count.
 */
export class AzureNoticeSource implements NoticeSource {
  readonly cloud = "azure";
  readonly channels = [channel];
  readonly #client: MetadataClient;
  readonly #tools: { readonly clock: Clock; readonly rng: Rng };
  #ownName: string | undefined;
  #answeredBefore = false;

  constructor(options: AzureNoticeOptions) {
    const { baseUrl = "http://169.254.169.254", clock, rng } = options;
    this.#client = new MetadataClient({ baseUrl, fetch: options.fetch, clock });
    this.#tools = { clock, rng };
  }

  async run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    await followChannel(
      { name: channel, ask: (stop) => this.#ask(stop), restMs: () => seconds(1) },
      { sink, ...this.#tools },
      signal,
    );
  }

  /** Acknowledged, an event begins at once, on every machine that it names. */
  async acknowledge(eventId: string, signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ StartRequests: [{ EventId: eventId }] });
    const answer = await this.#client.ask(
      { method: "POST", path: eventsPath, headers, body, timeoutMs },
      signal,
    );
    if (answer.status === 200) return;
    throw new LastcallError(
      "CLOUD_REFUSED",
      `Cannot acknowledge event ${eventId}: the metadata service answered ${answer.status}, expected 200`,
      { retryable: answer.status >= 500 || answer.status === 429 },
    );
  }

  async #ask(signal: AbortSignal): Promise<ChannelAnswer> {
    const ownName = await this.#name(signal);
    const answer = await this.#client.ask(
      { path: eventsPath, headers, timeoutMs: this.#answeredBefore ? timeoutMs : firstTimeoutMs },
      signal,
    );
    if (answer.status !== 200) throw refusedError(channel, answer);
    this.#answeredBefore = true;
    const { text, at, skewMs } = answer;
    return { reading: readAzureEvents({ text, at, ownName }), at, skewMs };
  }

  /** Without its own name an agent cannot tell its own events from a neighbour's. */
  async #name(signal: AbortSignal): Promise<string> {
    if (this.#ownName !== undefined) return this.#ownName;
    const answer = await this.#client.ask({ path: namePath, headers, timeoutMs }, signal);
    const name = answer.text.trim();
    if (answer.status !== 200 || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name)) {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot learn this machine's name: the metadata service answered ${answer.status}, expected 200 with a name`,
      );
    }
    this.#ownName = name;
    return name;
  }
}
