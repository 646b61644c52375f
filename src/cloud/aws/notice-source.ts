import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../contracts/notice-source.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { NoticeReading } from "../../core/notice/notice.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { MetadataClient, type MetadataFetch } from "../metadata/metadata-client.ts";
import { refusedError } from "../metadata/poll-answer.ts";
import { type ChannelAnswer, followChannel } from "../metadata/poll-channel.ts";
import { ImdsSession } from "./imds-session.ts";
import {
  type Heard,
  readInstanceAction,
  readRebalance,
  readScheduledEvents,
  readTargetLifecycleState,
} from "./notice-payload.ts";

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
  readonly read: (heard: Heard) => NoticeReading;
}

/**
 * What is two minutes ahead is asked for every second; what comes with more time to spare, seldom.
 * Paths: EC2 user guide, "Spot Instance interruption notices", "EC2 instance rebalance
 * recommendations", "Scheduled events", "Target lifecycle state".
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

/** EC2's metadata service: four paths, each polled by itself, so that a slow one delays no other. */
export class AwsNoticeSource implements NoticeSource {
  readonly cloud = "aws";
  readonly channels = paths.map(({ name }) => name);
  readonly #session: ImdsSession;
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
            // After a failure the urgent path's second, whatever the path: a notice may be waiting.
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
    // "Nothing is pending", in the words of this service.
    if (status === 404) return { reading: nothing, at, skewMs };
    if (status !== 200) throw refusedError(name, answer);
    return { reading: read({ text, at }), at, skewMs };
  }
}
