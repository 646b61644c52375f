import type { Clock } from "../../../contracts/clock.ts";
import type {
  FeedListener,
  HookDelivery,
  NoticeDelivery,
} from "../../../contracts/cloud/notices.ts";
import { halfToAll } from "../../../core/chance/backoff.ts";
import type { Rng } from "../../../core/chance/rng.ts";
import type { InstanceNotice, LifecycleHook } from "../../../core/notice/instance-notice.ts";
import { actFromAt } from "../../../core/notice/notice.ts";
import { between, hours, type Millis, millis, minutes, seconds } from "../../../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import type { InFlightMessages } from "./in-flight-messages.ts";
import type { QueueMessage } from "./queue-client.ts";
import { type MessageReading, readQueueMessage } from "./queue-message.ts";

export interface MessageHandlerOptions {
  readonly held: InFlightMessages;
  readonly listener: FeedListener;
  /** What becomes of messages that are not for a node of this cluster, or cannot be read. */
  readonly unknown: "Leave" | "Delete";
  readonly clock: Clock;
  readonly rng: Rng;
}

/** A message has done its work, or is to be told again after a while. */
export type MessageEnd = "Remove" | Millis;

const firstRetryMs = 50;
/** On a notice of two minutes each second may be the one in which the API server is back. */
const longestRetryMs = 1000;
const longestHookRetryMs = 30_000;
/** SQS hides no message for longer than twelve hours. */
const longestHiddenMs: Millis = hours(11);
/** How soon a new instance is looked for again, in its first minutes and after them. */
const joiningMs: Millis = seconds(10);
const lateJoiningMs: Millis = minutes(5);
const soonJoined = 30;

/** Tells the cluster what the messages say that one reader holds, and what becomes of each. */
export class MessageHandler {
  readonly #options: MessageHandlerOptions;
  /** Those that wait: the same hook may speak by several ways, and by each of them twice. */
  readonly #hooks = new Set<string>();

  constructor(options: MessageHandlerOptions) {
    this.#options = options;
  }

  /** Takes as long as the cluster cannot be written. Rejects when the signal aborts. */
  async endOf(message: QueueMessage, signal: AbortSignal): Promise<MessageEnd> {
    const reading = readQueueMessage({ text: message.text, at: message.sentAt });
    switch (reading.kind) {
      case "Ignored":
        return "Remove";
      case "Unreadable":
        this.#say("NOTICE_UNREADABLE", reading.problem);
        return this.#endOfUnknown(message);
      case "Launch": {
        const delivery = await this.#tellHook(reading.hook, message, signal);
        return this.#endOfLaunch(delivery, reading.hook, message);
      }
      case "Read":
        return this.#endOfNotices(reading, message, signal);
    }
  }

  /** For some minutes it is no news that a new machine has not joined yet. */
  #endOfLaunch(
    delivery: HookDelivery,
    { machine }: LifecycleHook,
    message: QueueMessage,
  ): MessageEnd {
    const isEarly = message.receipts < soonJoined;
    if (delivery === "Ended") return "Remove";
    if (delivery === "NoNode" && isEarly) return joiningMs;
    const found =
      delivery === "NoNode"
        ? `${machine} is not a node of this cluster`
        : `the launch hook of ${machine} is not ours to complete`;
    this.#say("INSTANCE_UNKNOWN", found);
    return delivery === "NoNode" ? lateJoiningMs : this.#endOfUnknown(message);
  }

  async #endOfNotices(
    reading: NoticesReading,
    message: QueueMessage,
    signal: AbortSignal,
  ): Promise<MessageEnd> {
    for (const problem of reading.problems) this.#say("NOTICE_UNREADABLE", problem);
    const deliveries = await Promise.all(
      reading.notices.map((instanceNotice) => this.#tell(instanceNotice, signal)),
    );
    if (deliveries.includes("NoNode") && this.#options.unknown === "Leave") {
      return this.#endOfUnknown(message);
    }
    const nowAt = this.#options.clock.now();
    const waits = reading.notices.flatMap(({ notice }, place) =>
      deliveries[place] === "TooEarly" ? between(nowAt, actFromAt(notice) ?? nowAt) : [],
    );
    if (waits.length > 0) return millis(Math.max(1000, Math.min(longestHiddenMs, ...waits)));
    // Of an instance that is no node here the group is not told anything: it may be another
    // cluster's.
    if (reading.hook !== undefined && deliveries[0] === "Taken") {
      await this.#tellHook(reading.hook, message, signal);
    }
    return "Remove";
  }

  /**
   * Another cluster on the queue is to have its message soon, since it has two minutes; what nobody
   * has wanted ten times is asked for less and less.
   */
  #endOfUnknown({ receipts }: QueueMessage): MessageEnd {
    if (this.#options.unknown === "Delete") return "Remove";
    return seconds(2 ** Math.max(0, Math.min(receipts - 10, 6)));
  }

  async #tell(instanceNotice: InstanceNotice, signal: AbortSignal): Promise<NoticeDelivery> {
    const { listener } = this.#options;
    const delivery = await this.#untilHeard(
      () => listener.onNotice(instanceNotice),
      longestRetryMs,
      signal,
    );
    const { machine, notice } = instanceNotice;
    if (delivery === "Stale")
      this.#say("NOTICE_STALE", `its ${notice.cause} of ${machine} is long past`);
    if (delivery === "NoNode")
      this.#say("INSTANCE_UNKNOWN", `${machine} is not a node of this cluster`);
    return delivery;
  }

  /** However long that takes, others are received meanwhile. One message is kept for a hook. */
  async #tellHook(
    hook: LifecycleHook,
    { id }: QueueMessage,
    signal: AbortSignal,
  ): Promise<HookDelivery> {
    const { held, listener } = this.#options;
    const key = keyOf(hook);
    if (this.#hooks.has(key)) return "Ended";
    this.#hooks.add(key);
    held.setAside(id);
    try {
      return await this.#untilHeard(() => listener.onHook(hook), longestHookRetryMs, signal);
    } finally {
      this.#hooks.delete(key);
      held.takeUp(id);
    }
  }

  /** Rejects when the signal aborts: what has been heard then is told again, and known. */
  async #untilHeard<T>(tell: () => Promise<T>, longestMs: number, signal: AbortSignal): Promise<T> {
    const { clock, rng, listener } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await tell();
      } catch (error) {
        signal.throwIfAborted();
        listener.onError(asFault(error));
        const wholeMs = Math.min(longestMs, firstRetryMs * 2 ** Math.min(attempt, 20));
        await clock.sleep(halfToAll(wholeMs, rng), signal);
      }
    }
  }

  #say(code: ErrorCode, found: string): void {
    const wanted = "expected a notice for a node";
    const message = `Cannot handle a message of the queue: ${found}, ${wanted}`;
    this.#options.listener.onError(new LastcallError(code, message));
  }
}

type NoticesReading = Extract<MessageReading, { readonly kind: "Read" }>;

function keyOf({ transition, machine, group, name, token }: LifecycleHook): string {
  return JSON.stringify([transition, machine, group, name, token]);
}
