import type { Clock } from "../../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../../contracts/cloud/notices.ts";
import { halfToAll } from "../../../core/chance/backoff.ts";
import type { Rng } from "../../../core/chance/rng.ts";
import { asFault } from "../aws-client.ts";
import {
  InFlightMessages,
  MessageHandler,
  type MessageHandlerOptions,
  type QueueClient,
  type QueueMessage,
} from "./message-handler.ts";

export interface SqsFeedOptions extends Pick<MessageHandlerOptions, "unknown"> {
  readonly client: QueueClient;
  /** How many receivers wait for messages at the same time. */
  readonly receivers: number;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** The most messages that wait for the cluster; the rest are just as safe in the queue. */
const mostBusy = 1000;
const firstRestMs = 1000;
const longestRestMs = 30_000;

/** The state of one run of the feed. Work that ends after its run does not affect the next. */
interface Reading {
  readonly held: InFlightMessages;
  readonly handler: MessageHandler;
  readonly listener: FeedListener;
  readonly signal: AbortSignal;
}

/**
 * Reads a queue with messages about EC2 instances. A message stays in the queue, hidden from
 * others, until each of its notices has been handled, so that none is lost if this process dies.
 */
export class SqsFeed implements NoticeFeed {
  readonly #options: SqsFeedOptions;

  constructor(options: SqsFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { receivers, client, clock, rng, unknown } = this.#options;
    const held = new InFlightMessages({
      client,
      clock,
      onError: (error) => listener.onError(error),
    });
    const handler = new MessageHandler({ held, listener, unknown, clock, rng });
    const reading: Reading = { held, handler, listener, signal };
    const loops = Array.from({ length: receivers }, () => this.#receive(reading));
    await Promise.allSettled([...loops, held.keepHidden(signal)]);
    await held.end();
  }

  async #receive(reading: Reading): Promise<void> {
    const { held, listener, signal } = reading;
    let failures = 0;
    for (;;) {
      while (held.busy >= mostBusy) await this.#rest(firstRestMs, signal);
      try {
        const messages = await this.#options.client.receive(signal);
        failures = 0;
        for (const message of messages) void take(message, reading);
      } catch (error) {
        signal.throwIfAborted();
        listener.onError(asFault(error));
        await this.#rest(Math.min(longestRestMs, firstRestMs * 2 ** failures), signal);
        failures = Math.min(failures + 1, 20);
      }
    }
  }

  #rest(wholeMs: number, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#options;
    return clock.sleep(halfToAll(wholeMs, rng), signal);
  }
}

/**
 * Handles a message independently of others. Ignores one that is received again while it is held.
 */
async function take(message: QueueMessage, reading: Reading): Promise<void> {
  const { held, handler, listener, signal } = reading;
  if (!held.take(message)) return;
  try {
    const end = await handler.endOf(message, signal);
    // Messages still held at the end of the run are released, and received again.
    if (signal.aborted) return;
    if (end === "Remove") held.finish(message.id, signal);
    else await held.giveBack(message.id, end);
  } catch (error) {
    if (signal.aborted) return;
    listener.onError(asFault(error));
    held.drop(message.id);
  }
}
