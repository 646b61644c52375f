import type { LifecycleHooks } from "../contracts/lifecycle-hooks.ts";
import type { NoticeFeed } from "../contracts/notice-feed.ts";
import type { CommandIo } from "./command-io.ts";

export interface QueueChoice {
  readonly sqsQueueUrl?: string | undefined;
  readonly sqsReceivers: number;
  readonly sqsUnknown: "Leave" | "Delete";
  readonly sqsCompleteHooks: boolean;
}

export interface QueueParts {
  readonly feeds: readonly NoticeFeed[];
  /** Absent: no group is told to go on. */
  readonly hooks?: LifecycleHooks | undefined;
}

/** Of the queue that is named, if one is; AWS' clients are loaded for it alone. */
export async function queueParts(
  options: QueueChoice,
  { clock, rng, env }: CommandIo,
): Promise<QueueParts> {
  const { sqsQueueUrl: url, sqsReceivers: receivers, sqsUnknown: unknown } = options;
  const { sqsCompleteHooks: completeHooks } = options;
  if (url === undefined) return { feeds: [] };
  const [{ SqsClient, regionOf }, { SqsFeed }] = await Promise.all([
    import("../cloud/aws/sqs-client.ts"),
    import("../cloud/aws/sqs-feed.ts"),
  ]);
  const hasEndpoint = (env.AWS_ENDPOINT_URL_SQS ?? env.AWS_ENDPOINT_URL ?? "") !== "";
  const client = new SqsClient({ url, clock, hasEndpoint });
  const feeds = [new SqsFeed({ client, receivers, unknown, clock, rng })];
  if (!completeHooks) return { feeds };
  const { AutoScaling } = await import("../cloud/aws/auto-scaling.ts");
  return { feeds, hooks: new AutoScaling({ region: regionOf(url) }) };
}
