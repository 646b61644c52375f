import { lookup } from "node:dns/promises";
import type { HostRule } from "../../actions/action-hosts.ts";
import type { HttpSender } from "../../actions/http-sender.ts";
import type { AwsActionOptions } from "../../cloud/aws/actions/aws-runners.ts";
import type { ActionPorts, ActionRunner, ActionRunners } from "../../contracts/action-runner.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
  LifecycleHooks,
  NoticeFeed,
  ReleaserChoice,
} from "../../contracts/cloud.ts";
import type { Fleet, FleetView } from "../../contracts/cluster.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { parseProviderId } from "../../core/cluster/node.ts";
import type { ActionKind } from "../../core/policy/action.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
import type { Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { KubeGateSourceOptions } from "../../kube/gate-source.ts";
import type { CommandIo } from "../command-line/command.ts";

/** The controller's access to the clouds. */
export interface CloudPorts {
  readonly releaserFor: ReleaserChoice;
  readonly launchTimes: LaunchTimes;
  /** For the clouds of these machines; see `MachineCloud`. */
  readonly groupsOf: NonNullable<MachineCloud["groupsOf"]>;
  /** Completes lifecycle hooks. Undefined if none are completed. */
  readonly hooks?: LifecycleHooks | undefined;
  /** The sources of notices from outside the cluster, for the watched fleet. */
  readonly feedsFor: (fleet: Fleet) => readonly NoticeFeed[];
}

/**
 * Loads the code of each cloud once. Credentials are looked up only at the first request, and a
 * cloud is contacted only once one of its machines is seen. Throws CONFIG_INVALID for an invalid
 * endpoint.
 */
export async function cloudPorts(
  options: {
    readonly gcpEndpoint?: string | undefined;
    readonly gcpPreemptionPoll?: Millis | undefined;
    readonly azureEndpoint?: string | undefined;
    readonly aksCluster?: string | undefined;
  } & AwsChoice,
  io: CommandIo,
): Promise<CloudPorts> {
  const pollMs = options.gcpPreemptionPoll;
  const { env, fetch, clock, rng } = io;
  const { createComputeEngine } = await import("../../cloud/gcp/compute-engine.ts");
  const gcp = createComputeEngine({
    endpoint: options.gcpEndpoint,
    keyFile: env.GOOGLE_APPLICATION_CREDENTIALS,
    ...{ fetch, clock, rng },
  });
  const aws = await awsPorts(options, io);
  const { createAzureCompute } = await import("../../cloud/azure/azure-compute.ts");
  const azure = createAzureCompute({
    endpoint: options.azureEndpoint,
    cluster: options.aksCluster,
    ...{ env, fetch, clock, rng },
  });
  const ec2 = loadedOnUse(async () => {
    const { createElasticCompute } = await import("../../cloud/aws/elastic-compute.ts");
    return createElasticCompute({ clock, rng });
  });
  const clouds: Readonly<Record<string, MachineCloud>> = { gcp, aws: ec2, azure };
  return {
    releaserFor: ({ providerID, mode }) => {
      // Karpenter's machines are released through the API server, whichever cloud they are in.
      if (mode === "NodeClaim") return undefined;
      const cloud = parseProviderId(providerID)?.cloud;
      return cloud === undefined ? undefined : clouds[cloud]?.releaser;
    },
    launchTimes: launchTimesOfAll(clouds),
    groupsOf: async (providerIDs, signal) => {
      const byCloud = Map.groupBy(providerIDs, (id) => parseProviderId(id)?.cloud);
      const asking = [...byCloud].map(async ([cloud, ids]) =>
        cloud === undefined ? [] : ((await clouds[cloud]?.groupsOf?.(ids, signal)) ?? []),
      );
      return (await Promise.all(asking)).flat();
    },
    hooks: aws.hooks,
    feedsFor: (fleet) => {
      const machines = () => ownedMachines(fleet.view());
      const feeds = aws.feedsFor({ fleet, machines });
      return pollMs === undefined ? feeds : [...feeds, gcp.preemptions({ pollMs, machines })];
    },
  };
}

/** The machines of the nodes that some policy selects: notices of other machines are ignored. */
export function ownedMachines({ nodes, policies }: FleetView): readonly string[] {
  const owned = nodes.filter((node) => selectPolicy(node, policies) !== undefined);
  return owned.flatMap(({ providerID }) => providerID ?? []);
}

interface AwsChoice {
  readonly sqsQueueUrl?: string | undefined;
  readonly sqsReceivers: number;
  readonly sqsUnknown: "Leave" | "Delete";
  readonly sqsCompleteHooks: boolean;
  readonly ec2StatusPoll?: Millis | undefined;
  readonly awsManagedTag?: string | undefined;
}

/** The controller's access to AWS. */
interface AwsPorts {
  readonly feedsFor: (about: AwsFleet) => readonly NoticeFeed[];
  /** Undefined if no lifecycle hook is completed. */
  readonly hooks?: LifecycleHooks | undefined;
}

interface AwsFleet {
  readonly fleet: Fleet;
  /** The providerIDs of the nodes that some policy selects. */
  readonly machines: () => readonly string[];
}

/** Loads only the AWS clients that the options enable. Throws CONFIG_INVALID. */
async function awsPorts(options: AwsChoice, io: CommandIo): Promise<AwsPorts> {
  const { clock, rng } = io;
  const queue = await queuePorts(options, io);
  const pollMs = options.ec2StatusPoll;
  const tag = await tagOf(options);
  if (pollMs === undefined && tag === undefined) {
    return { feedsFor: () => queue.feeds, hooks: queue.hooks };
  }
  const [{ Ec2Client }, { InstanceStatusFeed, ManagedFeed, TaggedMachines }] = await Promise.all([
    import("../../cloud/aws/ec2-client.ts"),
    import("../../cloud/aws/instance-feed.ts"),
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
    const isNode = (machine: string) => fleet.nodesOf(machine).length > 0;
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
  const { parseManagedTag } = await import("../../cloud/aws/ec2-machine.ts");
  return parseManagedTag(awsManagedTag);
}

interface QueuePorts extends Pick<AwsPorts, "hooks"> {
  readonly feeds: readonly NoticeFeed[];
  /** The region and account of the queue, if its URL names them. */
  readonly region?: string | undefined;
}

async function queuePorts(options: AwsChoice, { clock, rng, env }: CommandIo): Promise<QueuePorts> {
  const { sqsQueueUrl: url, sqsReceivers: receivers, sqsUnknown: unknown } = options;
  if (url === undefined) return { feeds: [] };
  const [{ SqsClient, regionOf }, { SqsFeed }] = await Promise.all([
    import("../../cloud/aws/queue/sqs-client.ts"),
    import("../../cloud/aws/queue/sqs-client.ts"),
  ]);
  const region = regionOf(url);
  const hasEndpoint = (env.AWS_ENDPOINT_URL_SQS ?? env.AWS_ENDPOINT_URL ?? "") !== "";
  const client = new SqsClient({ url, clock, hasEndpoint });
  const feeds = [new SqsFeed({ client, receivers, unknown, clock, rng })];
  if (!options.sqsCompleteHooks) return { feeds, region };
  const { AutoScaling } = await import("../../cloud/aws/auto-scaling.ts");
  return { feeds, region, hooks: new AutoScaling({ region }) };
}

/** What a cloud offers for its machines. */
export interface MachineCloud {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * Returns the providerIDs of all running machines in the groups of the given ones, including
   * those, and of all that are known to belong to the same cluster; each cloud has its limits.
   * Undefined if this cloud does not support it. Throws CLOUD_*.
   */
  readonly groupsOf?: (
    providerIDs: readonly string[],
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
}

/**
 * A cloud whose code is loaded at the first request: most clouds' clients are large, and only one
 * cloud is in use.
 */
export function loadedOnUse(load: () => Promise<MachineCloud>): MachineCloud {
  let loading: Promise<MachineCloud> | undefined;
  const cloud = () => {
    loading ??= load();
    return loading;
  };
  return {
    releaser: {
      describe: async (...asked) => (await cloud()).releaser.describe(...asked),
      check: async (...asked) => (await cloud()).releaser.check(...asked),
      release: async (...asked) => (await cloud()).releaser.release(...asked),
    },
    launchTimes: {
      launchTimesOf: async (...asked) => (await cloud()).launchTimes.launchTimesOf(...asked),
    },
    groupsOf: async (...asked) => (await (await cloud()).groupsOf?.(...asked)) ?? [],
  };
}

/** Asks each cloud for the launch times of its own machines, and skips clouds without any. */
export function launchTimesOfAll(
  clouds: Readonly<Record<string, Pick<MachineCloud, "launchTimes">>>,
): LaunchTimes {
  return {
    async launchTimesOf(providerIDs, signal): Promise<LaunchTimeReading> {
      const byCloud = Map.groupBy(providerIDs, (id) => parseProviderId(id)?.cloud);
      const asking = [...byCloud].map(async ([name, ids]) => {
        const cloud = name === undefined ? undefined : clouds[name];
        return cloud?.launchTimes.launchTimesOf(ids, signal);
      });
      const readings = await Promise.all(asking);
      return {
        bornAt: new Map(readings.flatMap((one) => [...(one?.bornAt ?? [])])),
        faults: readings.flatMap((one) => one?.faults ?? []),
      };
    },
  };
}

export interface ActionPortOptions extends Omit<AwsActionOptions, "region"> {
  readonly api: KubeApi;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `--action-hosts`. */
  readonly allowed: readonly HostRule[];
}

/** Parses `--action-hosts` before the first request to the cluster. Throws CONFIG_INVALID. */
export async function actionHosts(text: string | undefined): Promise<readonly HostRule[]> {
  if (text === undefined) return [];
  const { parseActionHosts } = await import("../../actions/action-hosts.ts");
  return parseActionHosts(text);
}

/** The only client for requests to hosts that a policy names. */
export async function guardedSender(
  options: Pick<ActionPortOptions, "allowed" | "env">,
): Promise<HttpSender> {
  const { HttpSender } = await import("../../actions/http-sender.ts");
  return new HttpSender({ ...options, resolve: (host) => lookup(host, { all: true }) });
}

export type AlertGate = KubeGateSourceOptions["firingAlerts"];

/** Queries the Alertmanager of a policy; the code is loaded only when a policy names one. */
export function alertGate(
  options: Pick<ActionPortOptions, "allowed" | "env" | "clock">,
): AlertGate {
  return async (question, signal) => {
    const { firingAlerts } = await import("../../actions/alertmanager.ts");
    const sender = await guardedSender(options);
    return firingAlerts(question, { sender, clock: options.clock }, signal);
  };
}

/** Loads the code of an action only when a policy names its type. */
export function actionPorts(options: ActionPortOptions): ActionPorts {
  const { api } = options;
  return {
    runners: actionRunners(options),
    addresses: async (node, signal) => {
      const { machineAddresses } = await import("../../kube/action-source.ts");
      return machineAddresses(api, node, signal);
    },
  };
}

function actionRunners(options: ActionPortOptions): ActionRunners {
  const loaded = new Map<ActionKind, Promise<ActionRunner | undefined>>();
  const load = (kind: ActionKind) => {
    const there = loaded.get(kind) ?? loadRunner(kind, options);
    loaded.set(kind, there);
    // If loading fails, the next call tries again.
    there.catch(() => loaded.delete(kind));
    return there;
  };
  return load as ActionRunners;
}

async function loadRunner(
  kind: ActionKind,
  options: ActionPortOptions,
): Promise<ActionRunner | undefined> {
  switch (kind) {
    case "unknown":
      return undefined;
    case "deregisterTargets":
    case "replaceSecurityGroups":
    case "detach":
    case "sns":
    case "lambda": {
      const { createAwsRunner } = await import("../../cloud/aws/actions/aws-runners.ts");
      const { AWS_REGION: region, AWS_DEFAULT_REGION: fallback } = options.env;
      return (await createAwsRunner(kind, {
        ...options,
        region: region ?? fallback,
      })) as ActionRunner;
    }
    default:
      return loadSink(kind, options);
  }
}

async function loadSink(
  kind: ActionKind,
  { api, namespace, clock, env, allowed }: ActionPortOptions,
): Promise<ActionRunner | undefined> {
  const [{ sinkRunner }, { KubeSecretReader }, sender] = await Promise.all([
    import("../../actions/sink-runners.ts"),
    import("../../kube/action-source.ts"),
    guardedSender({ allowed, env }),
  ]);
  return sinkRunner(kind, { sender, secrets: new KubeSecretReader(api, namespace), clock });
}
