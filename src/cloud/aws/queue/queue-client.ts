import type { Instant, Millis } from "../../../core/time/time.ts";

/**
 * A queue as SQS is one: every message may come more than once, and in any order. Made by
 * `sqs-client.ts`. All methods throw `LastcallError` `CLOUD_*`.
 */
export interface QueueClient {
  /**
   * Waits some seconds for messages; gives a few, or none where none has come. Each is hidden from
   * every reader for `hiddenMs`. Throws the signal's reason when it aborts.
   */
  receive(signal: AbortSignal): Promise<readonly QueueMessage[]>;
  /** They are told no more. One that is gone already, or hidden no more, is no fault. */
  remove(messages: readonly QueueMessage[]): Promise<void>;
  /**
   * They are told again after `span`, to whoever asks then; at once where that is 0. As `remove`.
   */
  hide(messages: readonly QueueMessage[], span: Millis): Promise<void>;
  readonly hiddenMs: Millis;
}

export interface QueueMessage {
  /** The same however often it is received. */
  readonly id: string;
  /** Of this receipt of it. */
  readonly handle: string;
  /** How often it has been received, by all readers. */
  readonly receipts: number;
  /** When it came into the queue, by the queue's clock, and not after now by ours. */
  readonly sentAt: Instant;
  readonly text: string;
}
