import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/cloud.ts";
import type { MetadataFetch } from "../../contracts/metadata.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { excerpt, fieldsOf, parseJson, trimmedTextOf } from "../../core/json/json-field.ts";
import { eventIdFrom, type Notice, type NoticeReading } from "../../core/notice/notice.ts";
import { type Instant, parseHttpDate, parseInstant, plus, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  type ChannelAnswer,
  followChannel,
  MetadataClient,
  refusedError,
} from "../metadata/metadata-client.ts";
import { eventCauses } from "./azure-facts.ts";

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

/** The first call enables the service for this machine, which takes up to two minutes. */
const firstTimeoutMs = seconds(130);
const timeoutMs = seconds(5);

/**
 * Azure Scheduled Events, polled every second. All machines of a scale set's placement group see
 * each other's events; only those that name this machine count.
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

  /** Once acknowledged, an event starts at once on every machine that it names. */
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

  /** Without its own name an agent cannot tell its events from those of its neighbours. */
  async #name(signal: AbortSignal): Promise<string> {
    if (this.#ownName !== undefined) return this.#ownName;
    const answer = await this.#client.ask({ path: namePath, headers, timeoutMs }, signal);
    const name = answer.text.trim();
    if (answer.status !== 200 || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name)) {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot read this machine's name: the metadata service answered ${answer.status}, expected 200 and a name`,
      );
    }
    this.#ownName = name;
    return name;
  }
}

/** The shortest notice period of all events, that of Preempt. */
const shortestNoticeMs = seconds(30);

/** An answer of Scheduled Events. */
interface EventsDocument {
  readonly text: string;
  /** When the answer came, in the cloud's time. */
  readonly at: Instant;
  /** The machine's own name: machines of a scale set see each other's events. */
  readonly ownName: string;
}

/**
 * Parses the document of `/metadata/scheduledevents` (api-version 2020-07-01). `NotBefore` is the
 * deadline; it is blank once an event has started, after which it may take effect at any moment.
 */
export function readAzureEvents({ text, at, ownName }: EventsDocument): NoticeReading {
  const events = fieldsOf(parseJson(text)?.value).Events;
  if (!Array.isArray(events)) {
    return { kind: "Unreadable", problem: `${excerpt(text)} has no list of Events` };
  }
  const read = events.map((entry) => azureEvent(entry, { at, ownName }));
  return {
    kind: "Read",
    notices: read.flatMap(({ notice }) => notice ?? []),
    ignored: read.flatMap(({ ignored }) => ignored ?? []),
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

interface ScheduledEventReading {
  readonly notice?: Notice;
  readonly ignored?: string;
  readonly problem?: string;
}

function azureEvent(
  entry: unknown,
  { at, ownName }: Pick<EventsDocument, "at" | "ownName">,
): ScheduledEventReading {
  const fields = fieldsOf(entry);
  const eventId = trimmedTextOf(fields.EventId);
  const type = trimmedTextOf(fields.EventType);
  const resources = fields.Resources;
  if (!eventId || !type || !Array.isArray(resources)) {
    return { problem: `${excerpt(entry)} has no EventId, EventType or Resources` };
  }
  const isOurs = resources.some(
    (name) => typeof name === "string" && name.toLowerCase() === ownName.toLowerCase(),
  );
  if (!isOurs) return {};
  // Own properties only: every object has a `constructor`.
  const cause = Object.hasOwn(eventCauses, type)
    ? eventCauses[type as keyof typeof eventCauses]
    : undefined;
  if (cause === undefined || cause === "LeavesNothing") return { ignored: type.slice(0, 40) };
  const notBefore = trimmedTextOf(fields.NotBefore);
  const namedAt = parseHttpDate(notBefore ?? "") ?? parseInstant(notBefore ?? "");
  // Fails open: this machine is leaving, at an unknown time.
  const unreadable = notBefore !== undefined && namedAt === undefined;
  const notice: Notice = {
    cause,
    deadlineAt: namedAt ?? (unreadable ? plus(at, shortestNoticeMs) : at),
    ...(namedAt === undefined && { isReckoned: true }),
    noticedAt: at,
    source: "azure/scheduled-events",
    eventId: eventIdFrom(eventId),
    // A preemption that has begun still takes the machine.
    ...(notBefore === undefined && cause === "ScheduledMaintenance" && { hasBegun: true }),
    // A started event no longer has a NotBefore.
    canBegin: resources.length === 1 && namedAt !== undefined,
  };
  return unreadable ? { notice, problem: `${excerpt(notBefore)} is not a time` } : { notice };
}
