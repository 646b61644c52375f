import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, HookFate, NoticeFeed, WordFate } from "../../contracts/notice-feed.ts";
import type { LifecycleHook } from "../../core/lifecycle-hook.ts";
import type { MachineWord } from "../../core/machine-word.ts";
import { actFromAt } from "../../core/notice.ts";
import type { Rng } from "../../core/rng.ts";
import {
  between,
  hours,
  type Instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../core/time.ts";
import { type ErrorCode, LastcallError } from "../../errors.ts";
import { asFault } from "./aws-fault.ts";
import type { QueueClient, QueueMessage } from "./queue-client.ts";
import { type MessageReading, readQueueMessage } from "./queue-message.ts";

export interface SqsFeedOptions {
  readonly client: QueueClient;
  /** How many wait for messages at a time. */
  readonly receivers: number;
  /** What becomes of messages that are not for a node of this cluster, or cannot be read. */
  readonly unknown: "Leave" | "Delete";
  readonly clock: Clock;
  readonly rng: Rng;
}

/** So many messages wait for the cluster at the most; the others are as safe in the queue. */
const mostOpen = 1000;
const firstRestMs = 1000;
const longestRestMs = 30_000;
const firstRetryMs = 50;
/** On a notice of two minutes each second may be the one in which the API server is back. */
const longestRetryMs = 1000;
/** SQS removes ten at a time: one that has done its work waits a moment for nine others. */
const mostRemoved = 10;
const lingerMs: Millis = millis(500);
/** SQS hides no message for longer than twelve hours. */
const longestHiddenMs: Millis = hours(11);
/**
 * A hook may wait for hours: its message is hidden for this long at a time, and shown again at our
 * death.
 */
const hookHiddenMs: Millis = minutes(2);
/** How soon a new instance is looked for again, in its first minutes and after them. */
const joiningMs: Millis = seconds(10);
const lateJoiningMs: Millis = minutes(5);
const soonJoined = 30;

/**
 * A queue that speaks of EC2's machines. A message stays in it, hidden from others, until each of its
 * words is heard, so that no death of ours loses one.
 */
export class SqsFeed implements NoticeFeed {
  readonly #options: SqsFeedOptions;
  /** Received and not dealt with, by id, under the handle of the newest receipt. */
  readonly #open = new Map<string, QueueMessage>();
  /** Those among them whose hook waits for the cluster, by id: until when they are hidden. */
  readonly #waiting = new Map<string, Instant>();
  /** What they wait for: the same hook may speak by several ways, and by each of them twice. */
  readonly #hooks = new Set<string>();
  /** The ids of those among them that are to be removed. */
  #done: string[] = [];

  constructor(options: SqsFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { receivers, clock } = this.#options;
    const loops = Array.from({ length: receivers }, () => this.#receive(listener, signal));
    await Promise.allSettled([...loops, this.#keepHidden(listener, signal)]);
    const removed = this.#removeDone(listener);
    // Whoever leads next has them at once; a queue that does not answer shows them by itself.
    const given = this.#hide([...this.#open.values()], millis(0), listener);
    this.#open.clear();
    this.#waiting.clear();
    await Promise.race([Promise.all([removed, given]), clock.sleep(seconds(2))]);
  }

  async #receive(listener: FeedListener, signal: AbortSignal): Promise<void> {
    let failures = 0;
    for (;;) {
      while (this.#isFull()) await this.#rest(firstRestMs, signal);
      try {
        const messages = await this.#options.client.receive(signal);
        failures = 0;
        for (const message of messages) void this.#take(message, listener, signal);
      } catch (error) {
        signal.throwIfAborted();
        listener.onTrouble(asFault(error));
        await this.#rest(Math.min(longestRestMs, firstRestMs * 2 ** failures), signal);
        failures = Math.min(failures + 1, 20);
      }
    }
  }

  #isFull(): boolean {
    return this.#open.size - this.#waiting.size >= mostOpen;
  }

  /** With half of it by chance, so that many do not return at once. */
  #rest(wholeMs: number, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#options;
    return clock.sleep(millis(Math.round(wholeMs * (0.5 + rng() / 2))), signal);
  }

  /** While the cluster cannot be written no other reader gets what is open here. */
  async #keepHidden(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    for (;;) {
      await clock.sleep(millis(client.hiddenMs / 2), signal);
      const { open, waiting } = this.#toHide(plus(clock.now(), client.hiddenMs));
      const hiddenUntil = plus(clock.now(), hookHiddenMs);
      for (const { id } of waiting) this.#waiting.set(id, hiddenUntil);
      await Promise.all([
        this.#hide(open, client.hiddenMs, listener),
        this.#hide(waiting, hookHiddenMs, listener),
      ]);
    }
  }

  #toHide(before: Instant) {
    return {
      open: [...this.#open.values()].filter(({ id }) => !this.#waiting.has(id)),
      waiting: [...this.#waiting].flatMap(([id, shownAt]) =>
        shownAt < before ? (this.#open.get(id) ?? []) : [],
      ),
    };
  }

  /** None waits for another. One that comes again while it is open is the same. */
  async #take(message: QueueMessage, listener: FeedListener, signal: AbortSignal): Promise<void> {
    const isOpen = this.#open.has(message.id);
    this.#open.set(message.id, message);
    if (isOpen) return;
    try {
      const end = await this.#endOf(message, listener, signal);
      if (end === "Remove") return this.#finish(message.id, listener, signal);
      await this.#hide([this.#open.get(message.id) ?? message], end, listener);
    } catch (error) {
      // It stays open and is given back at the end.
      if (signal.aborted) return;
      listener.onTrouble(asFault(error));
    }
    this.#open.delete(message.id);
    this.#waiting.delete(message.id);
  }

  /** Whether a message has done its work, or for how long it is to be hidden. */
  async #endOf(
    message: QueueMessage,
    listener: FeedListener,
    signal: AbortSignal,
  ): Promise<"Remove" | Millis> {
    const reading = readQueueMessage({ text: message.text, at: message.sentAt });
    switch (reading.kind) {
      case "Ignored":
        return "Remove";
      case "Unreadable":
        listener.onTrouble(unheeded("NOTICE_UNREADABLE", reading.problem));
        return this.#endOfUnknown(message);
      case "Launch": {
        const fate = await this.#tellHook(reading.hook, { message, listener, signal });
        return this.#endOfLaunch(fate, reading.hook, { message, listener, signal });
      }
      case "Read":
        return this.#endOfWords(reading, { message, listener, signal });
    }
  }

  /** For some minutes it is no news that a new machine has not joined yet. */
  #endOfLaunch(
    fate: HookFate,
    { machine }: LifecycleHook,
    { message, listener }: Told,
  ): "Remove" | Millis {
    const isEarly = message.receipts < soonJoined;
    if (fate === "Ended") return "Remove";
    if (fate === "NoNode" && isEarly) return joiningMs;
    const found =
      fate === "NoNode"
        ? `${machine} is no node of this cluster`
        : `the launch hook of ${machine} is others' to complete`;
    listener.onTrouble(unheeded("INSTANCE_UNKNOWN", found));
    return fate === "NoNode" ? lateJoiningMs : this.#endOfUnknown(message);
  }

  async #endOfWords(reading: WordReading, told: Told): Promise<"Remove" | Millis> {
    const { message, listener } = told;
    for (const problem of reading.problems) {
      listener.onTrouble(unheeded("NOTICE_UNREADABLE", problem));
    }
    const fates = await Promise.all(reading.words.map((word) => this.#tell(word, told)));
    if (fates.includes("NoNode") && this.#options.unknown === "Leave") {
      return this.#endOfUnknown(message);
    }
    const nowAt = this.#options.clock.now();
    const waits = reading.words.flatMap(({ notice }, place) =>
      fates[place] === "TooEarly" ? between(nowAt, actFromAt(notice) ?? nowAt) : [],
    );
    if (waits.length > 0) return millis(Math.max(1000, Math.min(longestHiddenMs, ...waits)));
    // Of an instance that is no node here the group is not told anything: it may be another
    // cluster's.
    if (reading.hook !== undefined && fates[0] === "Taken") {
      await this.#tellHook(reading.hook, told);
    }
    return "Remove";
  }

  /**
   * Another cluster on the queue is to have its message soon, since it has two minutes; what nobody has
   * wanted ten times is asked for less and less.
   */
  #endOfUnknown({ receipts }: QueueMessage): "Remove" | Millis {
    if (this.#options.unknown === "Delete") return "Remove";
    return seconds(2 ** Math.max(0, Math.min(receipts - 10, 6)));
  }

  async #tell(word: MachineWord, told: Told): Promise<WordFate> {
    const fate = await this.#untilHeard(() => told.listener.onWord(word), longestRetryMs, told);
    sayFate(word, fate, told.listener);
    return fate;
  }

  /** However long that takes, others are received meanwhile. One message is kept for a hook. */
  async #tellHook(hook: LifecycleHook, told: Told): Promise<HookFate> {
    const { message, listener } = told;
    const key = keyOf(hook);
    if (this.#hooks.has(key)) return "Ended";
    this.#hooks.add(key);
    this.#waiting.set(message.id, this.#options.clock.now());
    try {
      return await this.#untilHeard(() => listener.onHook(hook), longestRestMs, told);
    } finally {
      this.#hooks.delete(key);
      this.#waiting.delete(message.id);
    }
  }

  /** Rejects when the signal aborts. */
  async #untilHeard<T>(
    tell: () => Promise<T>,
    longestMs: number,
    { listener, signal }: Told,
  ): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await tell();
      } catch (error) {
        signal.throwIfAborted();
        listener.onTrouble(asFault(error));
        await this.#rest(Math.min(longestMs, firstRetryMs * 2 ** Math.min(attempt, 20)), signal);
      }
    }
  }

  #finish(id: string, listener: FeedListener, signal: AbortSignal): void {
    this.#done.push(id);
    if (this.#done.length >= mostRemoved) void this.#removeDone(listener);
    if (this.#done.length !== 1) return;
    const lingering = this.#options.clock.sleep(lingerMs, signal);
    // When the feed ends it removes them itself.
    void lingering.then(
      () => this.#removeDone(listener),
      () => undefined,
    );
  }

  async #removeDone(listener: FeedListener): Promise<void> {
    const ids = this.#done;
    this.#done = [];
    const messages = ids.flatMap((id) => this.#open.get(id) ?? []);
    for (const id of ids) this.#open.delete(id);
    if (messages.length === 0) return;
    // One that could not be removed comes again, and finds its work done.
    const { client } = this.#options;
    await client.remove(messages).catch((error) => listener.onTrouble(asFault(error)));
  }

  async #hide(
    messages: readonly QueueMessage[],
    span: Millis,
    listener: FeedListener,
  ): Promise<void> {
    const { client } = this.#options;
    if (messages.length === 0) return;
    await client.hide(messages, span).catch((error) => listener.onTrouble(asFault(error)));
  }
}

type WordReading = Extract<MessageReading, { readonly kind: "Read" }>;

/** A message, and who is to hear of it. */
interface Told {
  readonly message: QueueMessage;
  readonly listener: FeedListener;
  readonly signal: AbortSignal;
}

function keyOf({ transition, machine, group, name, token }: LifecycleHook): string {
  return JSON.stringify([transition, machine, group, name, token]);
}

function sayFate({ machine, notice }: MachineWord, fate: WordFate, listener: FeedListener): void {
  if (fate === "Stale") {
    listener.onTrouble(unheeded("NOTICE_STALE", `its ${notice.cause} of ${machine} is long past`));
  } else if (fate === "NoNode") {
    listener.onTrouble(unheeded("INSTANCE_UNKNOWN", `${machine} is no node of this cluster`));
  }
}

function unheeded(code: ErrorCode, found: string): LastcallError {
  const wanted = "a notice for a node is wanted";
  return new LastcallError(code, `Cannot heed a message of the queue: ${found}, ${wanted}`);
}
