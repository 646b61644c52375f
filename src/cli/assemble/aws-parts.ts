import type { LifecycleHooks } from "../../contracts/cloud/lifecycle-hooks.ts";
import type { NoticeFeed } from "../../contracts/cloud/notice-feed.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type { Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { CommandIo } from "../command-line/command-io.ts";

export interface AwsChoice {
  readonly sqsQueueUrl?: string | undefined;
  readonly sqsReceivers: number;
  readonly sqsUnknown: "Leave" | "Delete";
  readonly sqsCompleteHooks: boolean;
  readonly ec2StatusPoll?: Millis | undefined;
  readonly awsManagedTag?: string | undefined;
}

/** What a controller has of AWS. */
export interface AwsParts {
  readonly feedsFor: (about: AwsFleet) => readonly NoticeFeed[];
  /** Absent: no group is told to go on. */
  readonly hooks?: LifecycleHooks | undefined;
}

interface AwsFleet {
  readonly fleet: Fleet;
  /** The providerIDs of the nodes that some policy owns. */
  readonly machines: () => readonly string[];
}

/**
 * Of what is chosen, if anything is: AWS' clients are loaded for it alone. Throws CONFIG_INVALID.
 */
export async function awsParts(options: AwsChoice, io: CommandIo): Promise<AwsParts> {
  const { clock, rng } = io;
  const queue = await queueParts(options, io);
  const pollMs = options.ec2StatusPoll;
  const tag = await tagOf(options);
  if (pollMs === undefined && tag === undefined) {
    return { feedsFor: () => queue.feeds, hooks: queue.hooks };
  }
  const [{ Ec2Client }, { InstanceStatusFeed }, { ManagedFeed }, { TaggedMachines }] =
    await Promise.all([
      import("../../cloud/aws/ec2-client.ts"),
      import("../../cloud/aws/instance-status-feed.ts"),
      import("../../cloud/aws/managed-feed.ts"),
      import("../../cloud/aws/tagged-machines.ts"),
    ]);
  const ec2 = new Ec2Client({ region: queue.region });
  const feedsFor = ({ fleet, machines }: AwsFleet): readonly NoticeFeed[] => {
    const feeds: readonly NoticeFeed[] = [
      ...queue.feeds,
      ...(pollMs === undefined
        ? []
        : [new InstanceStatusFeed({ ec2, clock, rng, pollMs, machines })]),
    ];
    if (tag === undefined) return feeds;
    const tagged = new TaggedMachines({ ec2, tag, clock, rng });
    const isNode = (machine: string) => fleet.nodeOf(machine) !== undefined;
    return [new ManagedFeed({ feeds, machines: tagged, isNode })];
  };
  return { feedsFor, hooks: queue.hooks };
}

async function tagOf({ awsManagedTag, sqsQueueUrl, ec2StatusPoll }: AwsChoice) {
  if (awsManagedTag === undefined) return undefined;
  if (sqsQueueUrl === undefined && ec2StatusPoll === undefined) {
    throw new LastcallError(
      "CONFIG_INVALID",
      "Cannot use --aws-managed-tag: it needs --sqs-queue-url or --ec2-status-poll, set one of them",
    );
  }
  const { parseManagedTag } = await import("../../cloud/aws/tagged-machines.ts");
  return parseManagedTag(awsManagedTag);
}

interface QueueParts extends Pick<AwsParts, "hooks"> {
  readonly feeds: readonly NoticeFeed[];
  /** Where the queue is, as far as its URL says it. */
  readonly region?: string | undefined;
}

async function queueParts(options: AwsChoice, { clock, rng, env }: CommandIo): Promise<QueueParts> {
  const { sqsQueueUrl: url, sqsReceivers: receivers, sqsUnknown: unknown } = options;
  if (url === undefined) return { feeds: [] };
  const [{ SqsClient, regionOf }, { SqsFeed }] = await Promise.all([
    import("../../cloud/aws/queue/sqs-client.ts"),
    import("../../cloud/aws/queue/sqs-feed.ts"),
  ]);
  const region = regionOf(url);
  const hasEndpoint = (env.AWS_ENDPOINT_URL_SQS ?? env.AWS_ENDPOINT_URL ?? "") !== "";
  const client = new SqsClient({ url, clock, hasEndpoint });
  const feeds = [new SqsFeed({ client, receivers, unknown, clock, rng })];
  if (!options.sqsCompleteHooks) return { feeds, region };
  const { AutoScaling } = await import("../../cloud/aws/auto-scaling.ts");
  return { feeds, region, hooks: new AutoScaling({ region }) };
}
