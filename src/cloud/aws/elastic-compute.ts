import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { Instant } from "../../core/time/time.ts";
import { placesOf, readPlaces } from "../release/launch-times.ts";
import { oneEach } from "./actions/action-instance.ts";
import { AutoScaling } from "./auto-scaling.ts";
import { Ec2Client } from "./ec2-client.ts";
import type { Ec2Instances, InRegion } from "./ec2-machine.ts";
import { Ec2Releaser } from "./ec2-releaser.ts";
import { findInstanceRef } from "./instance-id.ts";

/** What the controller has of EC2's machines; over one client for each region. */
export interface ElasticCompute {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * The machines that the same Auto Scaling group has in service now, at most 500, and all of the
   * same cluster, by its tag, that run on Spot or are Karpenter's.
   */
  groupOf(providerID: string, signal: AbortSignal): Promise<readonly string[]>;
}

/** Puts the parts together; nothing is sent yet, and no credentials are looked for. */
export function createElasticCompute(settings: {
  readonly clock: Clock;
  readonly rng: Rng;
}): ElasticCompute {
  const instancesIn = oneEach((region) => new Ec2Client({ region }));
  const groupsIn = oneEach((region) => new AutoScaling({ region }));
  return {
    releaser: new Ec2Releaser({ instancesIn, groupsIn, ...settings }),
    launchTimes: new Ec2LaunchTimes(instancesIn),
    groupOf: async (providerID, signal) => {
      const ref = findInstanceRef(providerID);
      if (ref === undefined) return [];
      const { instanceId, region } = ref;
      const ec2 = instancesIn(region);
      const [found] = await ec2.instances([instanceId], signal);
      if (found === undefined) return [];
      const { nodePool, clusterTag } = found;
      const tagged = clusterTag === undefined ? [] : await ec2.nodesOf(clusterTag, signal);
      // Karpenter's are in no group, and a controller beside Karpenter may not ask for groups.
      if (nodePool !== undefined) return tagged;
      const grouped = await groupsIn(region).inServiceBeside(instanceId, signal);
      return [...new Set([...grouped.slice(0, 500), ...tagged])];
    },
  };
}

/** Launch times by `DescribeInstances`: one request for 190 instances of a region. */
export class Ec2LaunchTimes implements LaunchTimes {
  readonly #instancesIn: InRegion<Pick<Ec2Instances, "instances">>;

  constructor(instancesIn: InRegion<Pick<Ec2Instances, "instances">>) {
    this.#instancesIn = instancesIn;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    const places = placesOf(providerIDs, (providerID) => {
      const ref = findInstanceRef(providerID);
      return ref && { ref, key: ref.region ?? "", id: ref.instanceId };
    });
    const read = async (
      { ref, wanted }: (typeof places)[number],
      bornAt: Map<string, Instant>,
    ): Promise<void> => {
      const found = await this.#instancesIn(ref.region).instances([...wanted.keys()], signal);
      for (const { instanceId, state, launchedAt } of found) {
        const providerID = wanted.get(instanceId);
        if (providerID === undefined || launchedAt === undefined) continue;
        if (state !== "terminated") bornAt.set(providerID, launchedAt);
      }
    };
    return readPlaces(places, read, signal);
  }
}
