import type { NoticeFeed } from "../contracts/notice-feed.ts";
import type { CommandIo } from "./command-io.ts";

export interface QueueChoice {
  readonly sqsQueueUrl?: string | undefined;
  readonly sqsReceivers: number;
  readonly sqsUnknown: "Leave" | "Delete";
}

/** The queue that is named, if one is; AWS' client is loaded for it alone. */
export async function queueFeeds(
  options: QueueChoice,
  { clock, rng, env }: CommandIo,
): Promise<readonly NoticeFeed[]> {
  const { sqsQueueUrl: url, sqsReceivers: receivers, sqsUnknown: unknown } = options;
  if (url === undefined) return [];
  const [{ SqsClient }, { SqsFeed }] = await Promise.all([
    import("../cloud/aws/sqs-client.ts"),
    import("../cloud/aws/sqs-feed.ts"),
  ]);
  const hasEndpoint = (env.AWS_ENDPOINT_URL_SQS ?? env.AWS_ENDPOINT_URL ?? "") !== "";
  const client = new SqsClient({ url, clock, hasEndpoint });
  return [new SqsFeed({ client, receivers, unknown, clock, rng })];
}
