import type { NoticeFeed } from "../../contracts/cloud.ts";
import type {
  CloudAccess,
  CloudAccessOptions,
  CloudFleet,
} from "../../contracts/cloud-descriptor.ts";
import type { Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { loadedOnUse } from "../release/loaded-on-use.ts";

/** The options of the controller that AWS reads. */
export interface AwsAccessOptions {
  readonly sqsQueueUrl?: string | undefined;
  readonly sqsReceivers: number;
  readonly sqsUnknown: "Leave" | "Delete";
  readonly sqsCompleteHooks: boolean;
  readonly ec2StatusPoll?: Millis | undefined;
  readonly awsManagedTag?: string | undefined;
}

/** Loads only the AWS clients that the options enable. Throws CONFIG_INVALID. */
export async function awsAccess(
  options: AwsAccessOptions,
  parts: CloudAccessOptions,
): Promise<CloudAccess> {
  const { clock, rng } = parts;
  const machines = loadedOnUse(async () => {
    const { createElasticCompute } = await import("./elastic-compute.ts");
    return createElasticCompute({ clock, rng });
  });
  const queue = await queueAccess(options, parts);
  const pollMs = options.ec2StatusPoll;
  const tag = await tagOf(options);
  if (pollMs === undefined && tag === undefined) {
    return { machines, feedsFor: () => queue.feeds, hooks: queue.hooks };
  }
  const [{ Ec2Client }, { InstanceStatusFeed, ManagedFeed, TaggedMachines }] = await Promise.all([
    import("./ec2-client.ts"),
    import("./instance-feed.ts"),
  ]);
  const ec2 = new Ec2Client({ region: queue.region });
  const feedsFor = ({ fleet, machines: owned }: CloudFleet): readonly NoticeFeed[] => {
    const feeds: readonly NoticeFeed[] = [
      ...queue.feeds,
      ...(pollMs === undefined
        ? []
        : [new InstanceStatusFeed({ ec2, clock, rng, pollMs, machines: owned })]),
    ];
    if (tag === undefined) return feeds;
    const tagged = new TaggedMachines({ ec2, tag, clock, rng });
    const isNode = (machine: string) => fleet.nodesOf(machine).length > 0;
    return [new ManagedFeed({ feeds, machines: tagged, isNode })];
  };
  return { machines, feedsFor, hooks: queue.hooks };
}

async function tagOf({ awsManagedTag, sqsQueueUrl, ec2StatusPoll }: AwsAccessOptions) {
  if (awsManagedTag === undefined) return undefined;
  if (sqsQueueUrl === undefined && ec2StatusPoll === undefined) {
    throw new LastcallError(
      "CONFIG_INVALID",
      "Cannot use --aws-managed-tag: it needs --sqs-queue-url or --ec2-status-poll, set one of them",
    );
  }
  const { parseManagedTag } = await import("./ec2-machine.ts");
  return parseManagedTag(awsManagedTag);
}

interface QueueAccess extends Pick<CloudAccess, "hooks"> {
  readonly feeds: readonly NoticeFeed[];
  /** The region and account of the queue, if its URL names them. */
  readonly region?: string | undefined;
}

async function queueAccess(
  options: AwsAccessOptions,
  { clock, rng, env }: CloudAccessOptions,
): Promise<QueueAccess> {
  const { sqsQueueUrl: url, sqsReceivers: receivers, sqsUnknown: unknown } = options;
  if (url === undefined) return { feeds: [] };
  const { SqsClient, SqsFeed, regionOf } = await import("./queue/sqs-client.ts");
  const region = regionOf(url);
  const hasEndpoint = (env.AWS_ENDPOINT_URL_SQS ?? env.AWS_ENDPOINT_URL ?? "") !== "";
  const client = new SqsClient({ url, clock, hasEndpoint });
  const feeds = [new SqsFeed({ client, receivers, unknown, clock, rng })];
  if (!options.sqsCompleteHooks) return { feeds, region };
  const { AutoScaling } = await import("./auto-scaling.ts");
  return { feeds, region, hooks: new AutoScaling({ region }) };
}
