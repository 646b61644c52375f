import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
} from "../../contracts/cloud/instances.ts";
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
   * The machines that the Auto Scaling groups of these have in service now, those of the groups for
   * nodes with the tag of the same cluster, and all with that tag that run on Spot or are
   * Karpenter's. At most 500 of these instances are looked at.
   */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
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
    groupsOf: async (providerIDs, signal) => {
      const refs = providerIDs.flatMap((id) => findInstanceRef(id) ?? []).slice(0, 500);
      const found = await Promise.all(
        [...Map.groupBy(refs, ({ region }) => region)].map(([region, some]) => {
          const tools = { ec2: instancesIn(region), groups: groupsIn(region) };
          return machinesBeside(
            some.map(({ instanceId }) => instanceId),
            tools,
            signal,
          );
        }),
      );
      return [...new Set(found.flat())];
    },
  };
}

/** All that is asked of one region, each thing once for all instances. */
async function machinesBeside(
  instanceIds: readonly string[],
  { ec2, groups }: { readonly ec2: Ec2Client; readonly groups: AutoScaling },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await ec2.instances(instanceIds, signal);
  const tags = new Map(
    found.flatMap(({ clusterTag }) => clusterTag ?? []).map((tag) => [tag.key + tag.value, tag]),
  );
  const tagged = await Promise.all([...tags.values()].map((tag) => ec2.nodesOf(tag, signal)));
  // Karpenter's are in no group, and a controller beside Karpenter may not ask for groups.
  const others = found.filter(({ nodePool }) => nodePool === undefined);
  if (others.length === 0) return tagged.flat();
  const listed = await Promise.all([...tags.values()].map((tag) => groups.groups({ tag }, signal)));
  const ofNodes = listed.flat().filter(({ isOfNodes }) => isOfNodes);
  // What stands in one of these need not be asked for.
  const unknown = others
    .map(({ instanceId }) => instanceId)
    .filter((id) => !ofNodes.some(({ members }) => members.has(id)));
  const members = await groups.members(unknown.slice(0, mostMembers), signal);
  const names = [...new Set(members.map(({ group }) => group))];
  const more = names.length === 0 ? [] : await groups.groups({ names }, signal);
  return [...[...ofNodes, ...more].flatMap(({ inService }) => inService), ...tagged.flat()];
}

/** Of so many instances the group is asked for, in four requests. */
const mostMembers = 200;

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
