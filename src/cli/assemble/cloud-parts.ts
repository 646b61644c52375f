import type { ReleaserChoice } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { LifecycleHooks } from "../../contracts/cloud/lifecycle-hooks.ts";
import type { NoticeFeed } from "../../contracts/cloud/notice-feed.ts";
import type { Fleet, FleetView } from "../../contracts/fleet.ts";
import { type Machine, parseProviderId } from "../../core/cluster/node.ts";
import { selectPolicy } from "../../core/policy/selector.ts";
import type { Millis } from "../../core/time/time.ts";
import type { CommandIo } from "../command-line/command-io.ts";
import { type AwsChoice, awsParts } from "./aws-parts.ts";
import { launchTimesOfAll, loadedOnUse, type MachineCloud } from "./machine-cloud.ts";

/** What a controller has of the clouds. */
export interface CloudParts {
  readonly releaserFor: ReleaserChoice;
  readonly launchTimes: LaunchTimes;
  /** Of the cloud of that machine: see `MachineCloud`. */
  readonly groupOf: NonNullable<MachineCloud["groupOf"]>;
  /** The groups that wait for us; absent: none is told anything. */
  readonly hooks?: LifecycleHooks | undefined;
  /** Where notices come from outside the cluster, for the fleet that is watched. */
  readonly feedsFor: (fleet: Fleet) => readonly NoticeFeed[];
}

/**
 * A cloud's code is loaded here once; its credentials are looked for only when it is first asked,
 * and no cloud is asked of which no machine is seen. Throws CONFIG_INVALID for an endpoint that is
 * none.
 */
export async function cloudParts(
  options: {
    readonly gcpEndpoint?: string | undefined;
    readonly gcpPreemptionPoll?: Millis | undefined;
    readonly azureEndpoint?: string | undefined;
    readonly aksCluster?: string | undefined;
    readonly azureDeleteInstances: boolean;
  } & AwsChoice,
  io: CommandIo,
): Promise<CloudParts> {
  const pollMs = options.gcpPreemptionPoll;
  const { env, fetch, clock, rng } = io;
  const { createComputeEngine } = await import("../../cloud/gcp/compute-engine.ts");
  const gcp = createComputeEngine({
    endpoint: options.gcpEndpoint,
    keyFile: env.GOOGLE_APPLICATION_CREDENTIALS,
    ...{ fetch, clock, rng },
  });
  const aws = await awsParts(options, io);
  const { createAzureCompute } = await import("../../cloud/azure/azure-compute.ts");
  const azure = createAzureCompute({
    endpoint: options.azureEndpoint,
    cluster: options.aksCluster,
    deleteInstances: options.azureDeleteInstances,
    ...{ env, fetch, clock, rng },
  });
  const ec2 = loadedOnUse(async () => {
    const { createElasticCompute } = await import("../../cloud/aws/elastic-compute.ts");
    return createElasticCompute({ clock, rng });
  });
  const clouds: Readonly<Record<Machine["cloud"], MachineCloud>> = { gcp, aws: ec2, azure };
  return {
    releaserFor: ({ providerID, mode }) => {
      // Karpenter's machines are the API server's to release, whichever cloud they are in.
      if (mode === "NodeClaim") return undefined;
      const cloud = parseProviderId(providerID)?.cloud;
      return cloud === undefined ? undefined : clouds[cloud].releaser;
    },
    launchTimes: launchTimesOfAll(clouds),
    groupOf: async (providerID, signal) => {
      const cloud = parseProviderId(providerID)?.cloud;
      return (cloud && (await clouds[cloud].groupOf?.(providerID, signal))) ?? [];
    },
    hooks: aws.hooks,
    feedsFor: (fleet) => {
      const machines = () => ownedMachines(fleet.view());
      const feeds = aws.feedsFor({ fleet, machines });
      return pollMs === undefined ? feeds : [...feeds, gcp.preemptions({ pollMs, machines })];
    },
  };
}

/** The machines of the nodes that some policy owns: at the others no word is acted upon. */
export function ownedMachines({ nodes, policies }: FleetView): readonly string[] {
  const owned = nodes.filter((node) => selectPolicy(node, policies) !== undefined);
  return owned.flatMap(({ providerID }) => providerID ?? []);
}
