import type { Clock } from "../../../contracts/clock.ts";
import type { FeedListener, HookDelivery, NoticeDelivery } from "../../../contracts/cloud.ts";
import { backoffMs, type Rng } from "../../../core/chance/chance.ts";
import type { InstanceNotice, LifecycleHook } from "../../../core/notice/instance-notice.ts";
import { actFromAt } from "../../../core/notice/notice.ts";
import {
  between,
  hours,
  type Instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-client.ts";
import { type MessageReading, readQueueMessage } from "./queue-message.ts";

/**
 * A queue with the semantics of SQS: every message may arrive more than once, and in any order.
 * Implemented by `sqs-client.ts`. All methods throw `LastcallError` `CLOUD_*`.
 */
export interface QueueClient {
  /**
   * Waits some seconds for messages; returns a few, or none if none arrived. Each is hidden from
   * every reader for `hiddenMs`. Throws the signal's reason when it aborts.
   */
  receive(signal: AbortSignal): Promise<readonly QueueMessage[]>;
  /** Deletes them. One that is gone already, or no longer hidden, is not an error. */
  remove(messages: readonly QueueMessage[]): Promise<void>;
  /** Shows them again after `span` to any reader; at once if it is 0. Errors as for `remove`. */
  hide(messages: readonly QueueMessage[], span: Millis): Promise<void>;
  readonly hiddenMs: Millis;
}

export interface QueueMessage {
  /** The same for every receipt of the message. */
  readonly id: string;
  /** Identifies this receipt of the message. */
  readonly handle: string;
  /** How often the message was received, by any reader. */
  readonly receipts: number;
  /**
   * When it was sent to the queue, by the queue's clock; never later than now by the local clock.
   */
  readonly sentAt: Instant;
  readonly text: string;
}

export interface InFlightMessagesOptions {
  readonly client: QueueClient;
  readonly clock: Clock;
  onError(error: LastcallError): void;
}

/**
 * SQS deletes up to ten messages per request: a completed message waits a moment for nine others.
 */
const mostRemoved = 10;
const lingerMs: Millis = millis(500);
/**
 * A message that waits for hours is hidden for this long at a time, so that it reappears soon if
 * this process dies.
 */
const asideMs: Millis = minutes(2);

/**
 * The messages that one reader has received and not completed, hidden from other readers for as
 * long as it holds them. When the reader ends, they become visible again.
 */
export class InFlightMessages {
  readonly #options: InFlightMessagesOptions;
  /** By id, with the handle of the newest receipt. */
  readonly #held = new Map<string, QueueMessage>();
  /** The waiting messages by id, with the time until which they are hidden. */
  readonly #aside = new Map<string, Instant>();
  /** The ids of messages to delete. */
  #done: string[] = [];

  constructor(options: InFlightMessagesOptions) {
    this.#options = options;
  }

  /** The number of messages, without those set aside. */
  get busy(): number {
    return this.#held.size - this.#aside.size;
  }

  /** Returns false if the message is held already and has only been received again. */
  take(message: QueueMessage): boolean {
    const isNew = !this.#held.has(message.id);
    this.#held.set(message.id, message);
    // A new receipt replaces any longer hiding: the message is now hidden only as long as one just
    // received.
    if (this.#aside.has(message.id)) this.#aside.set(message.id, this.#options.clock.now());
    return isNew;
  }

  /** Marks a message that waits for something that may take hours. */
  setAside(id: string): void {
    this.#aside.set(id, this.#options.clock.now());
  }

  takeUp(id: string): void {
    this.#aside.delete(id);
  }

  /** Releases a message, which any reader may receive again after `span`. */
  async giveBack(id: string, span: Millis): Promise<void> {
    const message = this.#held.get(id);
    if (message !== undefined) await this.#hide([message], span);
    this.drop(id);
  }

  /** Forgets a message. The queue shows it again within seconds. */
  drop(id: string): void {
    this.#held.delete(id);
    this.#aside.delete(id);
  }

  /** Marks a message as completed. It is deleted in a moment, together with others. */
  finish(id: string, signal: AbortSignal): void {
    this.#done.push(id);
    if (this.#done.length >= mostRemoved) void this.#removeDone();
    if (this.#done.length !== 1) return;
    const lingering = this.#options.clock.sleep(lingerMs, signal);
    // `end` deletes the rest.
    void lingering.then(
      () => this.#removeDone(),
      () => undefined,
    );
  }

  /**
   * Keeps the messages hidden from other readers while they are held. Rejects when the signal
   * aborts.
   */
  async keepHidden(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    for (;;) {
      await clock.sleep(millis(client.hiddenMs / 2), signal);
      await Promise.all([this.#hide(this.#allBusy(), client.hiddenMs), this.#hideAside()]);
    }
  }

  /**
   * Releases all messages, so that the next reader gets them at once. If the queue does not
   * respond, they reappear on their own.
   */
  async end(): Promise<void> {
    const removed = this.#removeDone();
    const given = this.#hide([...this.#held.values()], millis(0));
    await Promise.race([Promise.all([removed, given]), this.#options.clock.sleep(seconds(2))]);
  }

  #allBusy(): readonly QueueMessage[] {
    return [...this.#held.values()].filter(({ id }) => !this.#aside.has(id));
  }

  /** Extends the hiding of messages set aside that would reappear before the next round. */
  async #hideAside(): Promise<void> {
    const { client, clock } = this.#options;
    const before = plus(clock.now(), client.hiddenMs);
    const due = [...this.#aside].flatMap(([id, shownAt]) =>
      shownAt < before ? (this.#held.get(id) ?? []) : [],
    );
    const hiddenUntil = plus(clock.now(), asideMs);
    if (!(await this.#hide(due, asideMs))) return;
    for (const { id, handle } of due) {
      const isSame = this.#held.get(id)?.handle === handle;
      if (isSame && this.#aside.has(id)) this.#aside.set(id, hiddenUntil);
    }
  }

  async #removeDone(): Promise<void> {
    const ids = this.#done;
    this.#done = [];
    const messages = ids.flatMap((id) => this.#held.get(id) ?? []);
    for (const id of ids) this.drop(id);
    if (messages.length === 0) return;
    const { client, onError } = this.#options;
    // A message that could not be deleted arrives again, and is recognized as completed.
    await client.remove(messages).catch((error) => onError(asFault(error)));
  }

  /** Returns whether all of them are hidden. */
  async #hide(messages: readonly QueueMessage[], span: Millis): Promise<boolean> {
    if (messages.length === 0) return true;
    const { client, onError } = this.#options;
    try {
      await client.hide(messages, span);
      return true;
    } catch (error) {
      onError(asFault(error));
      return false;
    }
  }
}

export interface MessageHandlerOptions {
  readonly held: InFlightMessages;
  readonly listener: FeedListener;
  /** What to do with messages that cannot be parsed or name no node of this cluster. */
  readonly unknown: "Leave" | "Delete";
  readonly clock: Clock;
  readonly rng: Rng;
}

/** What to do with a message: delete it, or show it again after this time. */
export type MessageEnd = "Remove" | Millis;

const firstRetryMs: Millis = millis(50);
/** Within a notice of two minutes, the API server may be back at any second. */
const longestRetryMs: Millis = seconds(1);
const longestHookRetryMs: Millis = seconds(30);
/** SQS hides a message for twelve hours at most. */
const longestHiddenMs: Millis = hours(11);
/** How often to check for a new instance, in its first minutes and later. */
const joiningMs: Millis = seconds(10);
const lateJoiningMs: Millis = minutes(5);
const soonJoined = 30;

/** Reports the messages of one reader to the cluster, and decides what becomes of each. */
export class MessageHandler {
  readonly #options: MessageHandlerOptions;
  /** The hooks being handled: one hook may send several messages, each of them twice. */
  readonly #hooks = new Set<string>();

  constructor(options: MessageHandlerOptions) {
    this.#options = options;
  }

  /**
   * Handles a message and returns what to do with it. Retries for as long as the cluster cannot be
   * written to. Rejects when the signal aborts.
   */
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
        return delivery === "Failed"
          ? this.#endOfUnknown(message)
          : this.#endOfLaunch(delivery, reading.hook, message);
      }
      case "Read":
        return this.#endOfNotices(reading, message, signal);
    }
  }

  /** In the first minutes, it is normal that a new machine has not joined yet. */
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
        : `the launch hook of ${machine} belongs to another cluster`;
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
    const { hook } = reading;
    const isShared = this.#options.unknown === "Leave";
    // An instance in its warm pool is expected to be no node, but in a shared queue nothing tells
    // whose it is.
    const isWarm = hook?.inWarmPool === true && !isShared;
    for (const [place, { machine }] of reading.notices.entries()) {
      if (deliveries[place] === "NoNode" && !isWarm)
        this.#say("INSTANCE_UNKNOWN", `${machine} is not a node of this cluster`);
    }
    if (deliveries.includes("NoNode") && isShared) return this.#endOfUnknown(message);
    const nowAt = this.#options.clock.now();
    const waits = reading.notices.flatMap(({ notice }, place) =>
      deliveries[place] === "TooEarly" ? between(nowAt, actFromAt(notice) ?? nowAt) : [],
    );
    if (waits.length > 0) return millis(Math.max(1000, Math.min(longestHiddenMs, ...waits)));
    // The hook of any other instance that is not a node here is not completed: it may belong to
    // another cluster.
    const isOurs = deliveries[0] === "Taken" || (isWarm && deliveries[0] === "NoNode");
    if (hook !== undefined && isOurs) await this.#tellHook(hook, message, signal);
    return "Remove";
  }

  /**
   * Another cluster that shares the queue needs its message soon, because it has two minutes. After
   * ten receipts, a message is shown less and less often.
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
      this.#say("NOTICE_STALE", `the ${notice.cause} of ${machine} is long past`);
    return delivery;
  }

  /**
   * Waits for the hook without blocking other messages. Only one message per hook is kept. Of the
   * clusters that share a queue, any may complete the hook of an instance that enters its warm
   * pool, but perhaps only its own has the permission: "Failed" leaves the message to that one.
   */
  async #tellHook(
    hook: LifecycleHook,
    { id }: QueueMessage,
    signal: AbortSignal,
  ): Promise<HookDelivery | "Failed"> {
    const { held, listener, unknown } = this.#options;
    const key = keyOf(hook);
    if (this.#hooks.has(key)) return "Ended";
    this.#hooks.add(key);
    held.setAside(id);
    const isAnyones =
      hook.transition === "Launching" && hook.inWarmPool === true && unknown === "Leave";
    try {
      return isAnyones
        ? await listener.onHook(hook)
        : await this.#untilHeard(() => listener.onHook(hook), longestHookRetryMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      listener.onError(asFault(error));
      return "Failed";
    } finally {
      this.#hooks.delete(key);
      held.takeUp(id);
    }
  }

  /**
   * Retries until it succeeds. Rejects when the signal aborts; a notice that was recorded just
   * before is reported again and recognized.
   */
  async #untilHeard<T>(tell: () => Promise<T>, longestMs: Millis, signal: AbortSignal): Promise<T> {
    const { clock, rng, listener } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await tell();
      } catch (error) {
        signal.throwIfAborted();
        listener.onError(asFault(error));
        const limits = { firstMs: firstRetryMs, mostMs: longestMs };
        await clock.sleep(backoffMs(attempt, rng, limits), signal);
      }
    }
  }

  #say(code: ErrorCode, found: string): void {
    const wanted = "expected a notice for a node";
    const message = `Cannot handle a message from the queue: ${found}, ${wanted}`;
    this.#options.listener.onError(new LastcallError(code, message));
  }
}

type NoticesReading = Extract<MessageReading, { readonly kind: "Read" }>;

function keyOf({ transition, machine, group, name, token }: LifecycleHook): string {
  return JSON.stringify([transition, machine, group, name, token]);
}
