import {
  type BatchResultErrorEntry,
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { Clock } from "../../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../../contracts/cloud.ts";
import { untilAborted } from "../../../contracts/time-limit.ts";
import { backoffMs, type Rng } from "../../../core/chance/chance.ts";
import { earlier, instant, type Millis, seconds } from "../../../core/time/time.ts";
import { type AwsPurpose, asFault, clientSettings, faultOfAws } from "../aws-client.ts";
import {
  InFlightMessages,
  MessageHandler,
  type MessageHandlerOptions,
  type QueueClient,
  type QueueMessage,
} from "./message-handler.ts";

export interface SqsOptions {
  readonly url: string;
  readonly clock: Clock;
  /**
   * Whether an endpoint is configured for the AWS client. It takes precedence over the URL's host.
   */
  readonly hasEndpoint: boolean;
}

export interface QueueDepth {
  readonly waiting: number;
  /** Received by a reader, and neither deleted nor released yet. */
  readonly inFlight: number;
}

/** The longest wait that SQS supports. */
const waitSeconds = 20;

const hiddenMs: Millis = seconds(20);

/** The most messages that one request may concern. */
const mostAtOnce = 10;

/** A long poll takes its time; a broken connection takes forever. */
const answerLimitMs: Millis = seconds(waitSeconds + 5);

/** Receipts that SQS no longer knows: the message is gone, or another reader has it. */
const goneNames = new Set([
  "MessageNotInflight",
  "ReceiptHandleIsInvalid",
  "InvalidParameterValue",
  "InvalidParameterValueException",
]);

/** An SQS queue. The AWS client finds credentials, region and endpoint. */
export class SqsClient implements QueueClient {
  readonly hiddenMs = hiddenMs;
  readonly #client: SQSClient;
  readonly #url: string;
  readonly #clock: Clock;

  constructor({ url, clock, hasEndpoint }: SqsOptions) {
    this.#url = url;
    this.#clock = clock;
    this.#client = new SQSClient({
      ...clientSettings({ region: regionOf(url), answerLimitMs }),
      useQueueUrlAsEndpoint: !hasEndpoint,
    });
  }

  async receive(signal: AbortSignal): Promise<readonly QueueMessage[]> {
    const command = new ReceiveMessageCommand({
      QueueUrl: this.#url,
      MaxNumberOfMessages: mostAtOnce,
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: hiddenMs / 1000,
      MessageSystemAttributeNames: ["SentTimestamp", "ApproximateReceiveCount"],
    });
    try {
      const sent = this.#client.send(command, { abortSignal: signal });
      // The client ignores the signal while it looks for credentials.
      const { Messages = [] } = await untilAborted(sent, signal);
      return Messages.flatMap((message) => this.#read(message) ?? []);
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, asking("receive messages from the queue", "sqs:ReceiveMessage"));
    }
  }

  async remove(messages: readonly QueueMessage[]): Promise<void> {
    const asked = asking("delete messages from the queue", "sqs:DeleteMessage");
    await inTens(messages, async (some) => {
      const Entries = some.map(entryOf);
      const command = new DeleteMessageBatchCommand({ QueueUrl: this.#url, Entries });
      await ofReceipts(this.#client.send(command), asked);
    });
  }

  async hide(messages: readonly QueueMessage[], span: Millis): Promise<void> {
    const VisibilityTimeout = Math.max(0, Math.ceil(span / 1000));
    const asked = asking("hide messages in the queue", "sqs:ChangeMessageVisibility");
    await inTens(messages, async (some) => {
      const Entries = some.map((one, place) => ({ ...entryOf(one, place), VisibilityTimeout }));
      const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#url, Entries });
      await ofReceipts(this.#client.send(command), asked);
    });
  }

  /** Returns the approximate number of messages, without receiving any. */
  async depth(signal: AbortSignal): Promise<QueueDepth> {
    const command = new GetQueueAttributesCommand({
      QueueUrl: this.#url,
      AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    });
    const asked = asking("read the attributes of the queue", "sqs:GetQueueAttributes");
    try {
      const { Attributes = {} } = await this.#client.send(command, { abortSignal: signal });
      const count = (text: string | undefined) => numberOf(text) ?? 0;
      return {
        waiting: count(Attributes.ApproximateNumberOfMessages),
        inFlight: count(Attributes.ApproximateNumberOfMessagesNotVisible),
      };
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, asked);
    }
  }

  #read({ MessageId, ReceiptHandle, Body, Attributes }: Message): QueueMessage | undefined {
    if (MessageId === undefined || ReceiptHandle === undefined) return undefined;
    const nowAt = this.#clock.now();
    const sentAt = numberOf(Attributes?.SentTimestamp);
    return {
      id: MessageId,
      handle: ReceiptHandle,
      receipts: numberOf(Attributes?.ApproximateReceiveCount) ?? 1,
      sentAt: sentAt === undefined ? nowAt : earlier(instant(sentAt), nowAt),
      text: Body ?? "",
    };
  }
}

function asking(action: string, permission: string): AwsPurpose {
  return {
    action,
    permission: `${permission} on the queue`,
    service: "SQS",
    wanted: "an existing queue at the URL in --sqs-queue-url",
  };
}

/** An entry's id is unique within its request. */
function entryOf({ handle }: QueueMessage, place: number) {
  return { Id: String(place), ReceiptHandle: handle };
}

/** Sends all batches, even if some fail; throws the first error. */
async function inTens(
  messages: readonly QueueMessage[],
  send: (some: readonly QueueMessage[]) => Promise<void>,
): Promise<void> {
  const count = Math.ceil(messages.length / mostAtOnce);
  const tens = Array.from({ length: count }, (_, place) =>
    messages.slice(place * mostAtOnce, (place + 1) * mostAtOnce),
  );
  const ends = await Promise.allSettled(tens.map(send));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** The response to a batch is a success that lists the entries that failed. */
async function ofReceipts(
  sent: Promise<{ readonly Failed?: readonly BatchResultErrorEntry[] | undefined }>,
  asked: AwsPurpose,
): Promise<void> {
  const { Failed = [] } = await sent.catch((error: unknown) => {
    throw faultOfAws(error, asked);
  });
  const failed = Failed.find(({ Code = "" }) => !goneNames.has(Code));
  if (failed === undefined) return;
  const { Code: name, Message: message, SenderFault: isOurs } = failed;
  const $metadata = { httpStatusCode: isOurs ? 400 : 500 };
  throw faultOfAws({ name, message, $metadata }, asked);
}

/** The domains of the AWS partitions, from the table in the AWS clients. */
const awsDomains = [
  ...[
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "api.aws",
    "api.amazonwebservices.com.cn",
  ],
  ...["c2s.ic.gov", "sc2s.sgov.gov", "cloud.adc-e.uk", "csp.hci.ic.gov"],
  ...["api.aws.ic.gov", "api.aws.scloud", "api.cloud-aws.adc-e.uk", "api.aws.hci.ic.gov"],
  "api.amazonwebservices.eu",
] as const;

/**
 * The region in an AWS host name, such as `sqs.eu-west-1.amazonaws.com` or that of a VPC endpoint;
 * otherwise undefined.
 */
export function regionOf(url: string): string | undefined {
  const { hostname } = new URL(url);
  if (!awsDomains.some((domain) => hostname.endsWith(`.${domain}`))) return undefined;
  return /(?:^|\.)((?:[a-z]{2}|eusc)(?:-[a-z]+)+-\d)(?:\.|$)/.exec(hostname)?.[1];
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export interface SqsFeedOptions extends Pick<MessageHandlerOptions, "unknown"> {
  readonly client: QueueClient;
  /** How many receivers wait for messages at the same time. */
  readonly receivers: number;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** The most messages that wait for the cluster; the rest are just as safe in the queue. */
const mostBusy = 1000;

const firstRestMs: Millis = seconds(1);

const longestRestMs: Millis = seconds(30);

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
      while (held.busy >= mostBusy) await this.#rest(0, signal);
      try {
        const messages = await this.#options.client.receive(signal);
        failures = 0;
        for (const message of messages) void take(message, reading);
      } catch (error) {
        signal.throwIfAborted();
        listener.onError(asFault(error));
        await this.#rest(failures, signal);
        failures += 1;
      }
    }
  }

  #rest(failures: number, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#options;
    const limits = { firstMs: firstRestMs, mostMs: longestRestMs };
    return clock.sleep(backoffMs(failures, rng, limits), signal);
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
