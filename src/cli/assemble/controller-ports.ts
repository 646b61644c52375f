import { lookup } from "node:dns/promises";
import type { HostRule } from "../../actions/action-hosts.ts";
import type { HttpSender } from "../../actions/http-sender.ts";
import type { AwsActionOptions } from "../../cloud/aws/actions/aws-runners.ts";
import { type AccessOptions, cloudAdapters } from "../../cloud/cloud-adapters.ts";
import type { ActionPorts, ActionRunner, ActionRunners } from "../../contracts/action-runner.ts";
import type {
  LaunchTimeReading,
  LaunchTimes,
  LifecycleHooks,
  MachineCloud,
  NoticeFeed,
  ReleaserChoice,
} from "../../contracts/cloud.ts";
import type { CloudAccess } from "../../contracts/cloud-descriptor.ts";
import type { Fleet, FleetView } from "../../contracts/cluster.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { parseProviderId } from "../../core/cluster/node.ts";
import type { ActionKind } from "../../core/policy/action.ts";
import { selectPolicy } from "../../core/policy/policy.ts";
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
export async function cloudPorts(options: AccessOptions, io: CommandIo): Promise<CloudPorts> {
  const { env, fetch, clock, rng } = io;
  const all: CloudAccess[] = [];
  const byName: Record<string, MachineCloud> = {};
  for (const [name, adapters] of Object.entries(cloudAdapters)) {
    const access: CloudAccess = await adapters.access(options, { env, fetch, clock, rng });
    all.push(access);
    byName[name] = access.machines;
  }
  return {
    releaserFor: ({ providerID, mode }) => {
      // Karpenter's machines are released through the API server, whichever cloud they are in.
      if (mode === "NodeClaim") return undefined;
      const cloud = parseProviderId(providerID)?.cloud;
      return cloud === undefined ? undefined : byName[cloud]?.releaser;
    },
    launchTimes: launchTimesOfAll(byName),
    groupsOf: async (providerIDs, signal) => {
      const byCloud = Map.groupBy(providerIDs, (id) => parseProviderId(id)?.cloud);
      const asking = [...byCloud].map(async ([cloud, ids]) =>
        cloud === undefined ? [] : ((await byName[cloud]?.groupsOf?.(ids, signal)) ?? []),
      );
      return (await Promise.all(asking)).flat();
    },
    hooks: all.find(({ hooks }) => hooks !== undefined)?.hooks,
    feedsFor: (fleet) => {
      const machines = () => ownedMachines(fleet.view());
      return all.flatMap(({ feedsFor }) => feedsFor?.({ fleet, machines }) ?? []);
    },
  };
}

/** The machines of the nodes that some policy selects: notices of other machines are ignored. */
export function ownedMachines({ nodes, policies }: FleetView): readonly string[] {
  const owned = nodes.filter((node) => selectPolicy(node, policies) !== undefined);
  return owned.flatMap(({ providerID }) => providerID ?? []);
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
