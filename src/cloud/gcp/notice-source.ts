import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/cloud.ts";
import type { MetadataFetch } from "../../contracts/metadata.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { excerpt } from "../../core/json/json-field.ts";
import type { Notice, NoticeReading } from "../../core/notice/notice.ts";
import {
  type Instant,
  type Millis,
  millis,
  parseDuration,
  plus,
  seconds,
} from "../../core/time/time.ts";
import {
  type ChannelAnswer,
  followChannel,
  type MetadataAnswer,
  MetadataClient,
  refusedError,
} from "../metadata/metadata-client.ts";

/**
 * The time from `preempted` = TRUE until a Spot machine is powered off (Compute Engine,
 * `scheduling.skipGuestOsShutdown`). The kubelet's own shutdown runs within it.
 */
export const defaultPreemptionNoticeMs: Millis = seconds(30);

/** Host maintenance is announced a minute ahead, or an hour ahead for machines with GPUs. */
const maintenanceNoticeMs = seconds(60);

/** A value of the Compute Engine metadata server, and when it arrived in the cloud's time. */
interface MetadataValue {
  readonly text: string;
  readonly at: Instant;
}

/**
 * Parses `instance/preempted`: TRUE or FALSE. `noticeMs` is the time that this machine has after
 * TRUE.
 */
export function readPreempted({ text, at }: MetadataValue, noticeMs: Millis): NoticeReading {
  const value = text.trim();
  if (value === "FALSE") return { kind: "Read", notices: [], ignored: [], problems: [] };
  if (value !== "TRUE") {
    return { kind: "Unreadable", problem: `${excerpt(text)} is neither TRUE nor FALSE` };
  }
  const notice: Notice = {
    cause: "SpotInterruption",
    deadlineAt: plus(at, noticeMs),
    isReckoned: true,
    noticedAt: at,
    source: "gcp/preempted",
    eventId: "preempted",
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

/**
 * Parses `instance/maintenance-event`: NONE, MIGRATE_ON_HOST_MAINTENANCE (live migration, with
 * everything that runs on it) or TERMINATE_ON_HOST_MAINTENANCE.
 */
export function readMaintenanceEvent({ text, at }: MetadataValue): NoticeReading {
  const value = text.trim();
  const read = { kind: "Read", notices: [], ignored: [], problems: [] } as const;
  if (value === "NONE") return read;
  if (value === "MIGRATE_ON_HOST_MAINTENANCE") return { ...read, ignored: [value] };
  if (value !== "TERMINATE_ON_HOST_MAINTENANCE") {
    return { kind: "Unreadable", problem: `${excerpt(text)} is not a maintenance event` };
  }
  const notice: Notice = {
    cause: "ScheduledMaintenance",
    deadlineAt: plus(at, maintenanceNoticeMs),
    isReckoned: true,
    noticedAt: at,
    source: "gcp/maintenance-event",
    eventId: "host-maintenance",
  };
  return { ...read, notices: [notice] };
}

/**
 * The time that a machine has after TRUE, as its owner set it in the metadata: `120s`. The metadata
 * server does not serve the platform's own `preemptionNoticeDuration`. Undefined if it cannot be
 * parsed.
 */
export function readNoticeDuration(text: string): Millis | undefined {
  const span = parseDuration(text.trim());
  return span === undefined || span < seconds(1) || span > seconds(600) ? undefined : span;
}

export interface GcpNoticeOptions {
  /** Default `http://169.254.169.254`. */
  readonly baseUrl?: string | undefined;
  readonly fetch: MetadataFetch;
  readonly clock: Clock;
  readonly rng: Rng;
  /** How long the server may hold a request open; default 60 s. */
  readonly waitSeconds?: number | undefined;
}

const headers = { "metadata-flavor": "Google" };
const root = "/computeMetadata/v1/instance";

/** Where the owner of the machines sets the length of their notice. */
const durationPath = `${root}/attributes/lastcall-preemption-notice`;

/**
 * The pause after a response with a new value; keeps a server that never holds requests from
 * causing a hot loop.
 */
const shortRestMs = millis(50);

interface HangingValue {
  readonly name: string;
  readonly path: string;
  readonly read: (heard: MetadataValue) => NoticeReading | Promise<NoticeReading>;
}

/**
 * Compute Engine's metadata server: a hanging GET on each of two values, which returns as soon as
 * the value changes. Each has its own etag and state. On GKE this needs the host's network: the
 * metadata server that ordinary pods reach does not have these values.
 */
export class GcpNoticeSource implements NoticeSource {
  readonly cloud = "gcp";
  readonly channels = ["gcp/preempted", "gcp/maintenance-event"];
  readonly #client: MetadataClient;
  readonly #clock: Clock;
  readonly #rng: Rng;
  readonly #waitSeconds: number;
  #noticeMs: Millis | undefined;

  constructor(options: GcpNoticeOptions) {
    const { baseUrl = "http://169.254.169.254", clock, rng, waitSeconds = 60 } = options;
    this.#client = new MetadataClient({ baseUrl, fetch: options.fetch, clock });
    this.#clock = clock;
    this.#rng = rng;
    this.#waitSeconds = waitSeconds;
  }

  async run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#learnDuration(signal),
      this.#follow(
        {
          name: "gcp/preempted",
          path: "preempted",
          read: (heard) => readPreempted(heard, this.#noticeMs ?? defaultPreemptionNoticeMs),
        },
        sink,
        signal,
      ),
      this.#follow(
        { name: "gcp/maintenance-event", path: "maintenance-event", read: readMaintenanceEvent },
        sink,
        signal,
      ),
    ]);
  }

  /**
   * Reads the duration once, in parallel, so that no notice waits for it; retries until there is a
   * response.
   */
  async #learnDuration(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#noticeMs === undefined) {
      try {
        const answer = await this.#client.ask({ path: durationPath, headers }, signal);
        if (answer.status !== 404 && answer.status !== 200)
          throw refusedError(durationPath, answer);
        const told = answer.status === 200 ? readNoticeDuration(answer.text) : undefined;
        this.#noticeMs = told ?? defaultPreemptionNoticeMs;
      } catch {
        // The channels report the error, since they poll the same server.
        await this.#rest(seconds(1), signal);
      }
    }
  }

  #follow(value: HangingValue, sink: NoticeSink, signal: AbortSignal): Promise<void> {
    // Not the etag of any value: the first request returns the current value at once.
    let etag = "NONE";
    let wasNew = true;
    let askedMs = 0;
    const ask = async (stop: AbortSignal): Promise<ChannelAnswer> => {
      askedMs = this.#clock.monotonic();
      const answer = await this.#hang(value, etag, stop);
      const next = answer.header("etag") ?? "";
      wasNew = next !== "" && next !== etag;
      const { text, at, skewMs } = answer;
      const reading = await value.read({ text, at });
      // A value that could not be parsed is requested again at once, not only when it changes.
      etag = reading.kind === "Read" && next !== "" ? next : "NONE";
      return { reading, at, skewMs };
    };
    const restMs = (turn: "Answered" | "Failed"): Millis => {
      const wasHeld = this.#clock.monotonic() - askedMs >= seconds(1);
      return turn === "Answered" && (wasNew || wasHeld) ? shortRestMs : seconds(1);
    };
    return followChannel(
      { name: value.name, ask, restMs },
      { sink, clock: this.#clock, rng: this.#rng },
      signal,
    );
  }

  async #hang(value: HangingValue, etag: string, signal: AbortSignal): Promise<MetadataAnswer> {
    const query = new URLSearchParams({
      wait_for_change: "true",
      last_etag: etag,
      timeout_sec: String(this.#waitSeconds),
    });
    const path = `${root}/${value.path}?${query}`;
    const timeoutMs = seconds(this.#waitSeconds + 10);
    const answer = await this.#client.ask({ path, headers, timeoutMs }, signal);
    if (answer.status !== 200) throw refusedError(value.name, answer);
    return answer;
  }

  async #rest(span: Millis, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(span, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}
