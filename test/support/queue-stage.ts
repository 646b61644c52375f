import { SqsFeed } from "../../src/cloud/aws/queue/sqs-client.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { formatInstant, instant, type Millis, plus, seconds } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { FakeQueue } from "./fake-queue.ts";
import { QueueListener } from "./queue-listener.ts";

export const dawn = instant(Date.UTC(2026, 10, 20, 12));
/** The machine of a node of the cluster, and one of no node. */
export const ours = "i-00000000000000001";
export const theirs = "i-00000000000000002";

/** A feed in virtual time, the queue that it reads and the cluster that it notifies. */
export class QueueStage {
  readonly clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
  readonly queue = new FakeQueue(this.clock);
  readonly cluster = new QueueListener({ [ours]: "Taken" });
  #feed: SqsFeed | undefined;
  #ending = new AbortController();
  #running: Promise<void> = Promise.resolve();

  /** Creates another feed on the queue. */
  feed({ seed = 1, unknown = "Leave" as "Leave" | "Delete" } = {}): SqsFeed {
    const { queue: client, clock } = this;
    return new SqsFeed({ client, receivers: 2, unknown, clock, rng: seededRng(seed) });
  }

  start(unknown: "Leave" | "Delete" = "Leave"): void {
    this.#feed = this.feed({ unknown });
    this.#listen(this.#feed);
  }

  /** As if the Lease were lost and acquired again: the same feed listens again. */
  async startAgain(): Promise<void> {
    await this.end();
    if (this.#feed !== undefined) this.#listen(this.#feed);
    await this.pass(seconds(1));
  }

  /** Tells the feed to end, and does not wait. */
  stop(): void {
    this.#ending.abort();
  }

  /** Ends the feed. */
  async end(): Promise<void> {
    this.stop();
    await this.pass(seconds(5));
    await this.#running;
  }

  pass(span: Millis): Promise<void> {
    return this.clock.runUntil(plus(this.clock.now(), span));
  }

  /** A message with the current time. */
  about(instanceId: string, id?: string) {
    return { instanceId, time: formatInstant(this.clock.now()), id };
  }

  #listen(feed: SqsFeed): void {
    this.#ending = new AbortController();
    this.#running = feed.run(this.cluster, this.#ending.signal);
  }
}
