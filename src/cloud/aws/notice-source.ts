import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/cloud.ts";
import type { MetadataFetch, MetadataRequest } from "../../contracts/metadata.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { excerpt, fieldsOf, parseJson, trimmedTextOf } from "../../core/json/json-field.ts";
import { eventIdFrom, type Notice, type NoticeReading } from "../../core/notice/notice.ts";
import {
  type Instant,
  type Millis,
  millis,
  parseHttpDate,
  parseInstant,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  type ChannelAnswer,
  followChannel,
  type MetadataAnswer,
  MetadataClient,
  refusedError,
} from "../metadata/metadata-client.ts";

/**
 * The notice period of a stop or a terminate: two minutes (AWS, "Spot Instance interruption
 * notices").
 */
export const spotNoticeMs = seconds(120);

/** A value from the EC2 metadata service, and when it arrived, in the cloud's time. */
export interface MetadataText {
  readonly text: string;
  readonly at: Instant;
}

/**
 * Parses `spot/instance-action`: `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`; the
 * action is terminate, stop or hibernate, and hibernation starts at once. Fails open: the instance
 * leaves even if the action or the time cannot be parsed.
 */
export function readInstanceAction({ text, at }: MetadataText): NoticeReading {
  const fields = fieldsOf(parseJson(text)?.value);
  const action = trimmedTextOf(fields.action);
  if (action === undefined) {
    return { kind: "Unreadable", problem: `${excerpt(text)} names no action` };
  }
  const namedAt = parseInstant(trimmedTextOf(fields.time) ?? "");
  const deadlineAt = action === "hibernate" ? at : (namedAt ?? plus(at, spotNoticeMs));
  const isReckoned = action === "hibernate" || namedAt === undefined;
  const notice: Notice = {
    cause: "SpotInterruption",
    deadlineAt,
    ...(isReckoned && { isReckoned }),
    noticedAt: at,
    source: "aws/spot-instance-action",
    eventId: `spot-${eventIdFrom(action)}-${eventIdFrom(trimmedTextOf(fields.time) ?? "")}`,
  };
  const problems = namedAt === undefined ? [`${excerpt(fields.time)} is not a time`] : [];
  return { kind: "Read", notices: [notice], ignored: [], problems };
}

/** Parses `events/recommendations/rebalance`: `{"noticeTime": "2020-10-27T08:22:00Z"}`. */
export function readRebalance({ text, at }: MetadataText): NoticeReading {
  const time = trimmedTextOf(fieldsOf(parseJson(text)?.value).noticeTime);
  const noticedAt = parseInstant(time ?? "");
  if (noticedAt === undefined) {
    return { kind: "Unreadable", problem: `${excerpt(text)} has no noticeTime` };
  }
  const notice: Notice = {
    cause: "RebalanceRecommendation",
    noticedAt: noticedAt < at ? noticedAt : at,
    source: "aws/rebalance",
    eventId: `rebalance-${eventIdFrom(time ?? "")}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

/**
 * Parses `events/maintenance/scheduled`: a list of `{NotBefore, Code, EventId, State}`, with dates
 * that lack a weekday. An event that cannot be parsed does not affect the others.
 */
export function readScheduledEvents({ text, at }: MetadataText): NoticeReading {
  const list = parseJson(text)?.value;
  if (!Array.isArray(list))
    return { kind: "Unreadable", problem: `${excerpt(text)} is not a list` };
  const read = list.map((entry) => scheduledEvent(entry, at));
  return {
    kind: "Read",
    notices: read.flatMap(({ notice }) => notice ?? []),
    ignored: [],
    problems: read.flatMap(({ problem }) => problem ?? []),
  };
}

function scheduledEvent(
  entry: unknown,
  at: Instant,
): { readonly notice?: Notice; readonly problem?: string } {
  const fields = fieldsOf(entry);
  const eventId = trimmedTextOf(fields.EventId);
  const notBefore = trimmedTextOf(fields.NotBefore) ?? "";
  const deadlineAt = parseHttpDate(notBefore) ?? parseInstant(notBefore);
  const state = trimmedTextOf(fields.State);
  // Cancelled and completed events stay listed for days. They are reported as withdrawn.
  const isOff = state === "canceled" || state === "completed";
  if (eventId === undefined) return { problem: `${excerpt(entry)} has no EventId` };
  // Fails open: the event is about this machine, and may come at any time.
  const isNoTime = deadlineAt === undefined && !isOff;
  return {
    ...(isNoTime ? { problem: `${excerpt(notBefore)} is not a NotBefore` } : {}),
    notice: {
      cause: "ScheduledMaintenance",
      deadlineAt,
      noticedAt: at,
      source: "aws/scheduled-events",
      eventId: eventIdFrom(eventId),
      ...(isOff ? { withdrawn: true } : {}),
    },
  };
}

const leavingStates = new Set([
  "Terminated",
  "Warmed:Terminated",
  "Warmed:Stopped",
  "Warmed:Hibernated",
]);

const stayingStates = new Set(["InService", "Standby", "Detached", "Warmed:Running"]);

/**
 * Parses `autoscaling/target-lifecycle-state`: a plain word, set if the group is terminating the
 * instance. It does not say how long the hook waits, so there is no deadline.
 */
export function readTargetLifecycleState({ text, at }: MetadataText): NoticeReading {
  const state = text.trim();
  if (stayingStates.has(state)) return { kind: "Read", notices: [], ignored: [], problems: [] };
  if (!leavingStates.has(state)) {
    return { kind: "Unreadable", problem: `${excerpt(text)} is not a lifecycle state` };
  }
  const notice: Notice = {
    cause: "LifecycleHook",
    noticedAt: at,
    source: "aws/target-lifecycle-state",
    eventId: `lifecycle-${eventIdFrom(state)}`,
  };
  return { kind: "Read", notices: [notice], ignored: [], problems: [] };
}

export interface AwsNoticeOptions {
  /** Default `http://169.254.169.254`. */
  readonly baseUrl?: string | undefined;
  readonly fetch: MetadataFetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

interface Path {
  readonly name: string;
  readonly path: string;
  readonly everyMs: Millis;
  readonly read: (heard: MetadataText) => NoticeReading;
}

/**
 * Notices of two minutes are polled every second, those with more lead time less often. Paths: EC2
 * user guide, "Spot Instance interruption notices", "EC2 instance rebalance recommendations",
 * "Scheduled events", "Target lifecycle state".
 */
const paths: readonly Path[] = [
  {
    name: "aws/spot-instance-action",
    path: "/latest/meta-data/spot/instance-action",
    everyMs: seconds(1),
    read: readInstanceAction,
  },
  {
    name: "aws/target-lifecycle-state",
    path: "/latest/meta-data/autoscaling/target-lifecycle-state",
    everyMs: seconds(5),
    read: readTargetLifecycleState,
  },
  {
    name: "aws/rebalance",
    path: "/latest/meta-data/events/recommendations/rebalance",
    everyMs: seconds(10),
    read: readRebalance,
  },
  {
    name: "aws/scheduled-events",
    path: "/latest/meta-data/events/maintenance/scheduled",
    everyMs: seconds(30),
    read: readScheduledEvents,
  },
];

const nothing: NoticeReading = Object.freeze({
  kind: "Read",
  notices: [],
  ignored: [],
  problems: [],
});

/**
 * EC2's metadata service: four paths, each polled independently, so that a slow one does not delay
 * the others.
 */
export class AwsNoticeSource implements NoticeSource {
  readonly cloud = "aws";
  readonly channels = paths.map(({ name }) => name);
  readonly #session: ImdsSession;
  /** The paths on which something is or may be pending: an earlier process may have reported it. */
  readonly #pending = new Set(paths.map(({ path }) => path));
  readonly #tools: { readonly clock: Clock; readonly rng: Rng };

  constructor(options: AwsNoticeOptions) {
    const { baseUrl = "http://169.254.169.254", clock, rng } = options;
    const client = new MetadataClient({ baseUrl, fetch: options.fetch, clock });
    this.#session = new ImdsSession(client, clock);
    this.#tools = { clock, rng };
  }

  async run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    await Promise.all(
      paths.map((path) =>
        followChannel(
          {
            name: path.name,
            ask: (stop) => this.#ask(path, stop),
            // After a failure every path is polled again after one second: a notice may be waiting.
            restMs: (turn) => (turn === "Answered" ? path.everyMs : seconds(1)),
          },
          { sink, ...this.#tools },
          signal,
        ),
      ),
    );
  }

  async #ask({ name, path, read }: Path, signal: AbortSignal): Promise<ChannelAnswer> {
    const answer = await this.#session.get(path, signal);
    const { status, text, at, skewMs } = answer;
    if (status === 404) {
      await this.#confirmNothing({ name, path }, answer, signal);
      return { reading: nothing, at, skewMs };
    }
    if (status !== 200) throw refusedError(name, answer);
    this.#pending.add(path);
    return { reading: read({ text, at }), at, skewMs };
  }

  /**
   * The service responds with 404 if nothing is pending, and so does a proxy that has lost it.
   * Where something was pending, only a service that still knows its instance shows that it no
   * longer is.
   */
  async #confirmNothing(
    { name, path }: Pick<Path, "name" | "path">,
    answer: MetadataAnswer,
    signal: AbortSignal,
  ): Promise<void> {
    if (!this.#pending.has(path)) return;
    const { status, text } = await this.#session.get("/latest/meta-data/instance-id", signal);
    if (status !== 200 || !/^i-[0-9a-f]+$/.test(text.trim())) throw refusedError(name, answer);
    this.#pending.delete(path);
  }
}

const wantedSeconds = 21_600;

interface MetadataToken {
  readonly text: string;
  /** On the monotonic clock: when to request a new token, at half its lifetime. */
  readonly renewMs: number;
}

/**
 * Uses only version 2 of EC2's metadata service, with a token that is renewed at half its lifetime
 * and replaced when it is refused. It never falls back to version 1, which the server-side request
 * forgery of any pod could use.
 */
export class ImdsSession {
  readonly #client: MetadataClient;
  readonly #clock: Clock;
  #token: MetadataToken | undefined;
  #asking: Promise<MetadataToken> | undefined;

  constructor(client: MetadataClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * Sends a GET for `path`. Replaces a token that is refused with 401, once. Throws as
   * `MetadataClient.ask` does.
   */
  async get(path: string, signal: AbortSignal): Promise<MetadataAnswer> {
    const first = await this.#current(signal);
    const answer = await this.#client.ask(withToken(path, first), signal);
    if (answer.status !== 401) return answer;
    if (this.#token === first) this.#token = undefined;
    return this.#client.ask(withToken(path, await this.#current(signal)), signal);
  }

  /** Returns a valid token. Channels that need a new one at the same time share the request. */
  async #current(signal: AbortSignal): Promise<MetadataToken> {
    const token = this.#token;
    if (token !== undefined && this.#clock.monotonic() < token.renewMs) return token;
    this.#asking ??= this.#fresh(signal).finally(() => {
      this.#asking = undefined;
    });
    try {
      return await this.#asking;
    } catch (error) {
      // The token is still valid for half its lifetime, so it is used until a new one arrives.
      if (token !== undefined && !signal.aborted) return token;
      throw error;
    }
  }

  async #fresh(signal: AbortSignal): Promise<MetadataToken> {
    const answer = await this.#client.ask(
      {
        method: "PUT",
        path: "/latest/api/token",
        headers: { "x-aws-ec2-metadata-token-ttl-seconds": String(wantedSeconds) },
      },
      signal,
    );
    const text = answer.text.trim();
    if (answer.status !== 200 || !/^[\x21-\x7e]{1,1024}$/.test(text)) {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot get a token of the metadata service: it answered ${answer.status}, expected 200 and a token (with a hop limit of 1, only pods on the host network get one)`,
      );
    }
    const told = Number(answer.header("x-aws-ec2-metadata-token-ttl-seconds"));
    const lifeMs = (told > 0 ? Math.min(told, wantedSeconds) : wantedSeconds) * 1000;
    this.#token = { text, renewMs: this.#clock.monotonic() + millis(lifeMs / 2) };
    return this.#token;
  }
}

function withToken(path: string, token: MetadataToken): MetadataRequest {
  return { path, headers: { "x-aws-ec2-metadata-token": token.text } };
}
