import type { QueueClient, QueueMessage } from "../../src/cloud/aws/queue/message-handler.ts";
import type { Clock } from "../../src/contracts/clock.ts";
import {
  hours,
  type Instant,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";

interface Kept {
  readonly id: string;
  readonly text: string;
  readonly sentAt: Instant;
  receipts: number;
  receivedAt: Instant;
  shownAt: Instant;
}

/** The longest time for which SQS hides a message after its receipt, however often asked. */
const mostHiddenMs = hours(12);

/**
 * A queue in memory, on a test's clock; several readers can share it. As in SQS, only the newest
 * receipt of a message surely removes it, and a message is hidden only while it is in flight.
 */
export class FakeQueue implements QueueClient {
  readonly hiddenMs = seconds(20);
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #waiting = new Set<AbortController>();
  #sent = 0;
  /** While it is set, requests of every kind fail with this error. */
  fault: LastcallError | undefined;
  readonly calls: string[] = [];
  /** How many messages readers have received; redeliveries count again. */
  given = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  send(body: unknown): void {
    this.#sent += 1;
    const id = `message-${this.#sent}`;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const nowAt = this.#clock.now();
    this.#kept.set(id, { id, text, sentAt: nowAt, receipts: 0, receivedAt: nowAt, shownAt: nowAt });
    this.#wakeAll();
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The messages that a reader would get now. */
  get shown(): number {
    return this.#ready().length;
  }

  async receive(signal: AbortSignal): Promise<readonly QueueMessage[]> {
    this.#call("receive");
    const until = plus(this.#clock.now(), seconds(20));
    while (this.#ready().length === 0 && this.#clock.now() < until) {
      await this.#waitInLine(until, signal);
      signal.throwIfAborted();
    }
    return this.#ready()
      .slice(0, 10)
      .map((one) => {
        one.receipts += 1;
        this.given += 1;
        one.receivedAt = this.#clock.now();
        one.shownAt = plus(one.receivedAt, this.hiddenMs);
        const { id, text, sentAt, receipts } = one;
        return { id, text, sentAt, receipts, handle: `${id}/${receipts}` };
      });
  }

  async remove(messages: readonly QueueMessage[]): Promise<void> {
    this.#call(`remove ${idsOf(messages)}`);
    for (const { id, handle } of messages) {
      if (handle === `${id}/${this.#kept.get(id)?.receipts}`) this.#kept.delete(id);
    }
  }

  async hide(messages: readonly QueueMessage[], span: Millis): Promise<void> {
    this.#call(`hide ${idsOf(messages)} ${span}`);
    for (const { id, handle } of messages) {
      const one = this.#kept.get(id);
      if (one === undefined || handle !== `${id}/${one.receipts}`) continue;
      const shownAt = plus(this.#clock.now(), span);
      const isInFlight = one.shownAt > this.#clock.now();
      // SqsClient treats SQS's refusals as what they mean: another reader may have the message.
      if (isInFlight && shownAt <= plus(one.receivedAt, mostHiddenMs)) one.shownAt = shownAt;
    }
    this.#wakeAll();
  }

  #ready(): Kept[] {
    const nowAt = this.#clock.now();
    return [...this.#kept.values()].filter((one) => one.shownAt <= nowAt);
  }

  /** Waits until something changes, or a hidden message becomes visible again. */
  async #waitInLine(until: Instant, signal: AbortSignal): Promise<void> {
    const own = new AbortController();
    this.#waiting.add(own);
    const shownAt = [...this.#kept.values()].map((one) => one.shownAt);
    const span = millis(Math.min(until, ...shownAt) - this.#clock.now());
    // Cancellation is not an error.
    await this.#clock.sleep(span, AbortSignal.any([signal, own.signal])).catch(() => undefined);
    this.#waiting.delete(own);
  }

  #wakeAll(): void {
    for (const one of this.#waiting) one.abort();
  }

  #call(what: string): void {
    this.calls.push(what);
    if (this.fault !== undefined) throw this.fault;
  }
}

function idsOf(messages: readonly QueueMessage[]): string {
  return messages.map(({ id }) => id).join(",");
}

export function queueFault(): LastcallError {
  return new LastcallError("CLOUD_UNREACHABLE", "Cannot ask the queue: no answer, expected one");
}
