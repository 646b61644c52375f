import type { Clock } from "../../contracts/clock.ts";
import type { InstanceReleaser } from "../../contracts/cloud/instance-releaser.ts";
import type { LaunchTimeReading, LaunchTimes } from "../../contracts/cloud/launch-times.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import { oneEach } from "./actions/action-instance.ts";
import { AutoScaling } from "./auto-scaling.ts";
import { Ec2Client } from "./ec2-client.ts";
import type { Ec2Instances, InRegion } from "./ec2-machine.ts";
import { Ec2Releaser } from "./ec2-releaser.ts";
import { findInstanceRef, type InstanceRef } from "./instance-id.ts";

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

/** Instances of one region: what one row of requests can tell. */
interface Place {
  readonly region: InstanceRef["region"];
  /** The providerID by the instance's id. */
  readonly wanted: Map<string, string>;
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
    signal.throwIfAborted();
    const bornAt = new Map<string, Instant>();
    const faults: LastcallError[] = [];
    const places = placesOf(providerIDs).map(async ({ region, wanted }) => {
      try {
        const found = await this.#instancesIn(region).instances([...wanted.keys()], signal);
        for (const { instanceId, state, launchedAt } of found) {
          const providerID = wanted.get(instanceId);
          if (providerID === undefined || launchedAt === undefined) continue;
          if (state !== "terminated") bornAt.set(providerID, launchedAt);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (!isLastcallError(error)) throw error;
        faults.push(error);
      }
    });
    await Promise.all(places);
    return { bornAt, faults };
  }
}

/** Machines of other clouds, and what is no instance, are asked of nobody. */
function placesOf(providerIDs: readonly string[]): readonly Place[] {
  const places = new Map<string | undefined, Place>();
  for (const providerID of providerIDs) {
    const ref = findInstanceRef(providerID);
    if (ref === undefined) continue;
    const place = places.get(ref.region) ?? { region: ref.region, wanted: new Map() };
    place.wanted.set(ref.instanceId, providerID);
    places.set(ref.region, place);
  }
  return [...places.values()];
}
