import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { Clock } from "../../contracts/clock.ts";
import { earlier, instant, type Millis, seconds } from "../../core/time.ts";
import type { QueueClient, QueueMessage } from "./queue-client.ts";
import { faultOfQueue } from "./sqs-fault.ts";

export interface SqsOptions {
  readonly url: string;
  readonly clock: Clock;
  /** Whether an endpoint is set for AWS' client, which then counts for more than the URL's host. */
  readonly hasEndpoint: boolean;
}

/** The longest that SQS lets a reader wait. */
const waitSeconds = 20;
const hiddenMs: Millis = seconds(20);
/** A queue's answer takes its time, a broken connection takes for ever. */
const answerLimitMs = (waitSeconds + 5) * 1000;

const silentLog = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** Receipts of which SQS knows nothing any more: the message is gone, or another has it. */
const goneNames = new Set([
  "MessageNotInflight",
  "ReceiptHandleIsInvalid",
  "InvalidParameterValue",
  "InvalidParameterValueException",
]);

/** A queue of SQS, with credentials, region and endpoint as AWS' client finds them. */
export class SqsClient implements QueueClient {
  readonly hiddenMs = hiddenMs;
  readonly #client: SQSClient;
  readonly #url: string;
  readonly #clock: Clock;

  constructor({ url, clock, hasEndpoint }: SqsOptions) {
    this.#url = url;
    this.#clock = clock;
    const region = regionOf(url);
    this.#client = new SQSClient({
      ...(region === undefined ? {} : { region }),
      useQueueUrlAsEndpoint: !hasEndpoint,
      // The caller tries again, and says so.
      maxAttempts: 2,
      logger: silentLog,
      requestHandler: {
        connectionTimeout: 3000,
        requestTimeout: answerLimitMs,
        throwOnRequestTimeout: true,
      },
    });
  }

  async receive(signal: AbortSignal): Promise<readonly QueueMessage[]> {
    const command = new ReceiveMessageCommand({
      QueueUrl: this.#url,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: hiddenMs / 1000,
      MessageSystemAttributeNames: ["SentTimestamp", "ApproximateReceiveCount"],
    });
    try {
      const { Messages = [] } = await this.#client.send(command, { abortSignal: signal });
      return Messages.flatMap((message) => this.#read(message) ?? []);
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfQueue(error, {
        action: "receive from the queue",
        permission: "sqs:ReceiveMessage",
      });
    }
  }

  async remove({ handle }: QueueMessage): Promise<void> {
    await ofReceipt(
      this.#client.send(new DeleteMessageCommand({ QueueUrl: this.#url, ReceiptHandle: handle })),
      { action: "delete a message of the queue", permission: "sqs:DeleteMessage" },
    );
  }

  async hide({ handle }: QueueMessage, span: Millis): Promise<void> {
    await ofReceipt(
      this.#client.send(
        new ChangeMessageVisibilityCommand({
          QueueUrl: this.#url,
          ReceiptHandle: handle,
          VisibilityTimeout: Math.max(0, Math.ceil(span / 1000)),
        }),
      ),
      { action: "hide a message of the queue", permission: "sqs:ChangeMessageVisibility" },
    );
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

async function ofReceipt(
  sent: Promise<unknown>,
  asked: { readonly action: string; readonly permission: string },
): Promise<void> {
  try {
    await sent;
  } catch (error) {
    if (goneNames.has((error as Error).name)) return;
    throw faultOfQueue(error, asked);
  }
}

/** The region in a host of AWS', `sqs.eu-west-1.amazonaws.com` or a VPC endpoint's; else undefined. */
export function regionOf(url: string): string | undefined {
  const { hostname } = new URL(url);
  if (!/\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws)$/.test(hostname)) return undefined;
  return /(?:^|\.)([a-z]{2}(?:-[a-z]+)+-\d)(?:\.|$)/.exec(hostname)?.[1];
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
