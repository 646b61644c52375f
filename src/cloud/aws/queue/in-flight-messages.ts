import type { Clock } from "../../../contracts/clock.ts";
import {
  type Instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../../core/time/time.ts";
import type { LastcallError } from "../../../errors.ts";
import { asFault } from "../aws-fault.ts";
import type { QueueClient, QueueMessage } from "./queue-client.ts";

export interface InFlightMessagesOptions {
  readonly client: QueueClient;
  readonly clock: Clock;
  onError(error: LastcallError): void;
}

/** SQS removes ten at a time: one that has done its work waits a moment for nine others. */
const mostRemoved = 10;
const lingerMs: Millis = millis(500);
/**
 * What waits for hours is hidden for this long at a time, so that it is shown again soon after our
 * death.
 */
const asideMs: Millis = minutes(2);

/**
 * The messages that one reader has received and not dealt with, hidden from the others for as long
 * as it holds them. Its end gives them back.
 */
export class InFlightMessages {
  readonly #options: InFlightMessagesOptions;
  /** By id, under the handle of the newest receipt. */
  readonly #held = new Map<string, QueueMessage>();
  /** Those among them that wait, by id: until when they are hidden. */
  readonly #aside = new Map<string, Instant>();
  /** The ids of those among them that are to be removed. */
  #done: string[] = [];

  constructor(options: InFlightMessagesOptions) {
    this.#options = options;
  }

  /** How many there are beside those that wait. */
  get busy(): number {
    return this.#held.size - this.#aside.size;
  }

  /** False where it is held already, and has only been received again. */
  take(message: QueueMessage): boolean {
    const isNew = !this.#held.has(message.id);
    this.#held.set(message.id, message);
    // Whatever hid it before, it is hidden now as one just received is.
    if (this.#aside.has(message.id)) this.#aside.set(message.id, this.#options.clock.now());
    return isNew;
  }

  /** It waits for something that may take hours. */
  setAside(id: string): void {
    this.#aside.set(id, this.#options.clock.now());
  }

  takeUp(id: string): void {
    this.#aside.delete(id);
  }

  /** It is told again after `span`, to whoever asks then. */
  async giveBack(id: string, span: Millis): Promise<void> {
    const message = this.#held.get(id);
    if (message !== undefined) await this.#hide([message], span);
    this.drop(id);
  }

  /** It is told again by itself, in some seconds. */
  drop(id: string): void {
    this.#held.delete(id);
    this.#aside.delete(id);
  }

  /** It has done its work: it is removed in a moment, with others. */
  finish(id: string, signal: AbortSignal): void {
    this.#done.push(id);
    if (this.#done.length >= mostRemoved) void this.#removeDone();
    if (this.#done.length !== 1) return;
    const lingering = this.#options.clock.sleep(lingerMs, signal);
    // The end removes what is left.
    void lingering.then(
      () => this.#removeDone(),
      () => undefined,
    );
  }

  /**
   * While the cluster cannot be written no other reader gets them. Rejects when the signal aborts.
   */
  async keepHidden(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    for (;;) {
      await clock.sleep(millis(client.hiddenMs / 2), signal);
      await Promise.all([this.#hide(this.#allBusy(), client.hiddenMs), this.#hideAside()]);
    }
  }

  /** Whoever reads next has them at once; a queue that does not answer shows them by itself. */
  async end(): Promise<void> {
    const removed = this.#removeDone();
    const given = this.#hide([...this.#held.values()], millis(0));
    await Promise.race([Promise.all([removed, given]), this.#options.clock.sleep(seconds(2))]);
  }

  #allBusy(): readonly QueueMessage[] {
    return [...this.#held.values()].filter(({ id }) => !this.#aside.has(id));
  }

  /** Those that would be shown before the next look. */
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
    // One that could not be removed comes again, and finds its work done.
    await client.remove(messages).catch((error) => onError(asFault(error)));
  }

  /** Whether each of them is hidden. */
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
