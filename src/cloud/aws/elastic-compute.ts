import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { MachineState } from "../../core/cluster/machine.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import {
  type LeavingMachine,
  placesOf,
  type ReleaseLoopOptions,
  readPlaces,
  releaseByLooking,
  type Standing,
} from "../release/release-loop.ts";
import { AutoScaling } from "./auto-scaling.ts";
import { Ec2Client } from "./ec2-client.ts";
import {
  type Ec2Instances,
  type Ec2Machine,
  findInstanceRef,
  type GroupSize,
  type InRegion,
  type InstanceRef,
  type Membership,
  machineIdOf,
  namesOf,
  oneEach,
  type ScalingGroups,
  stageOf,
} from "./ec2-machine.ts";
import { GroupRefusals } from "./group-refusals.ts";

/** The controller's access to EC2, with one client per region. */
export interface ElasticCompute {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * Returns the instances in service in the Auto Scaling groups of the given instances and in node
   * groups with their cluster's tag, and all instances with that tag that run on Spot or belong to
   * Karpenter. Reads at most 500 of the given instances.
   */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

/** Creates the parts. Sends nothing yet, and does not look for credentials. */
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

/** Reads one region, with each request covering all instances. */
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
  // Karpenter's instances are in no group, and a controller that runs with Karpenter may lack the
  // permission to list groups.
  const others = found.filter(({ nodePool }) => nodePool === undefined);
  if (others.length === 0) return tagged.flat();
  const listed = await Promise.all([...tags.values()].map((tag) => groups.groups({ tag }, signal)));
  const ofNodes = listed.flat().filter(({ isOfNodes }) => isOfNodes);
  // The group of an instance in one of these is already known.
  const unknown = others
    .map(({ instanceId }) => instanceId)
    .filter((id) => !ofNodes.some(({ members }) => members.has(id)));
  const members = await groups.members(unknown.slice(0, mostMembers), signal);
  const names = [...new Set(members.map(({ group }) => group))];
  const more = await groups.groups({ names }, signal);
  return [...[...ofNodes, ...more].flatMap(({ inService }) => inService), ...tagged.flat()];
}

/** For at most this many instances the group is looked up, in four requests. */
const mostMembers = 200;

/** Launch times by `DescribeInstances`, with one request for 190 instances of a region. */
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

export interface Ec2ReleaserOptions extends ReleaseLoopOptions {
  readonly instancesIn: InRegion<Ec2Instances>;
  readonly groupsIn: InRegion<ScalingGroups>;
}

/**
 * Releases EC2 instances, through their Auto Scaling group if they are in one. An abort rejects
 * with the signal's reason while AWS finishes the request; calling again with the same request
 * resumes it.
 */
export class Ec2Releaser implements InstanceReleaser {
  readonly #options: Ec2ReleaserOptions;
  readonly #refusals: GroupRefusals;

  constructor(options: Ec2ReleaserOptions) {
    this.#options = options;
    this.#refusals = new GroupRefusals(options.clock);
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const machine = await this.#look(instanceRefOf(providerID), signal);
    if (machine === undefined || machine.instance.state === "terminated") return { kind: "Absent" };
    const { instance } = machine;
    // While its group waits for a lifecycle hook, EC2 still reports it as running.
    const running = standingOf(machine) === "Staying";
    const { launchedAt: bornAt, asOf } = instance;
    const [id, names] = [machineIdOf(instance), namesOf(instance)];
    return { kind: "Present", id, bornAt, asOf, running, names };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = instanceRefOf(question.providerID);
    signal.throwIfAborted();
    const machine = await this.#look(ref, signal);
    if (machine === undefined) return impossible(`EC2 has no instance ${ref.instanceId}`);
    const found = await this.#checkFound({ ref, machine }, question, signal);
    return found.kind === "Possible" ? { ...found, names: namesOf(machine.instance) } : found;
  }

  async #checkFound(
    { ref, machine }: { readonly ref: InstanceRef; readonly machine: Ec2Machine },
    question: ReleaseQuestion,
    signal: AbortSignal,
  ): Promise<Releasability> {
    // It is already being terminated, so no permission is needed.
    if (standingOf(machine) !== "Staying") return { kind: "Possible", permission: "Unknown" };
    const { mode, detach } = question;
    const choice = releaseChoice(machine, { mode, isOutOfGroup: detach === "Begun" });
    switch (choice.kind) {
      case "Refused":
        return impossible(choice.problem);
      case "InGroup": {
        const inGroup = await this.#checkGroup(ref, choice, signal);
        if (inGroup.kind === "Impossible" || detach === undefined) return inGroup;
        // It leaves its group before the release, and is then terminated by itself.
        const alone = await this.#checkAlone(ref, signal);
        return alone.kind === "Impossible" ? alone : inGroup;
      }
      case "Alone":
        return this.#checkAlone(ref, signal);
    }
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    signal.throwIfAborted();
    const ref = instanceRefOf(request.providerID);
    const { mode } = request;
    const choose = (seen: Ec2Machine) =>
      releaseChoice(seen, { mode, isOutOfGroup: request.isOutOfGroup?.() === true });
    const machine: LeavingMachine<Ec2Machine> = {
      look: (until) => this.#look(ref, until),
      standing: (seen) =>
        machineIdOf(seen.instance) === request.machineId ? standingOf(seen) : "Replaced",
      act: (seen, bounds) => this.#act(ref, choose(seen), bounds.signal),
      stillThere: (seen) => stillThere(ref, seen),
    };
    return releaseByLooking({ machine, lastLook: request.lastLook }, this.#options, signal);
  }

  async #look(ref: InstanceRef, signal: AbortSignal): Promise<Ec2Machine | undefined> {
    const { instanceId, region } = ref;
    const instance = await this.#options.instancesIn(region).instance(instanceId, signal);
    if (instance === undefined) return undefined;
    if (stageOf(instance) !== "Running") return { instance, membership: undefined };
    const membership = await this.#options.groupsIn(region).membership(instanceId, signal);
    return { instance, membership };
  }

  async #act(ref: InstanceRef, choice: ReleaseChoice, signal: AbortSignal): Promise<void> {
    const { instanceId, region } = ref;
    const { instancesIn, groupsIn } = this.#options;
    switch (choice.kind) {
      case "Refused":
        throw new LastcallError("CLOUD_REFUSED", `Cannot release ${instanceId}: ${choice.problem}`);
      case "Alone":
        return instancesIn(region).terminate(instanceId, signal);
      case "InGroup":
        try {
          return await groupsIn(region).terminate(instanceId, choice, signal);
        } catch (error) {
          this.#refusals.note({ region, ...choice }, error);
          throw error;
        }
    }
  }

  /** Cannot check the permission: the Auto Scaling call has no dry run. */
  async #checkGroup(
    { region }: InstanceRef,
    choice: InGroup,
    signal: AbortSignal,
  ): Promise<Releasability> {
    const { group, desired, weight } = choice;
    const denied = this.#refusals.denied({ region, group });
    if (denied !== undefined) return impossible(denied);
    const size = await this.#options.groupsIn(region).size(group, signal);
    const isForeseen =
      desired === "Kept" || weight !== undefined || size?.countsInstances !== false;
    const kept = isForeseen ? undefined : this.#refusals.minimum({ region, group });
    const problem = groupProblem(choice, size) ?? kept;
    return problem === undefined
      ? { kind: "Possible", permission: "Unknown" }
      : impossible(problem);
  }

  async #checkAlone(ref: InstanceRef, signal: AbortSignal): Promise<Releasability> {
    const { instanceId, region } = ref;
    try {
      await this.#options.instancesIn(region).tryTerminate(instanceId, signal);
      return { kind: "Possible", permission: "Granted" };
    } catch (error) {
      const isRefused = isLastcallError(error) && error.code === "CLOUD_RIGHT_MISSING";
      if (!isRefused) throw error;
      const permission = "ec2:TerminateInstances";
      return impossible(
        `the permission ${permission} is not granted on ${instanceId}, grant it (docs/cloud/aws.md#rights)`,
      );
    }
  }
}

/**
 * During a termination hook, an instance keeps running until the hook is completed or times out.
 */
function standingOf({ instance, membership }: Ec2Machine): Exclude<Standing, "Replaced"> {
  const stage = stageOf(instance);
  if (stage !== "Running") return stage;
  const state = membership?.state ?? "";
  // Retained: its hook was abandoned, and the group waits for another request.
  const isLeaving = /(^|:)Terminat/.test(state) && !state.endsWith(":Retained");
  return isLeaving ? "Leaving" : "Staying";
}

/** Throws CLOUD_REFUSED if the providerID is not that of an instance. */
function instanceRefOf(providerID: string): InstanceRef {
  const ref = findInstanceRef(providerID);
  if (ref !== undefined) return ref;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release a machine: found the providerID ${providerID}, expected aws:///ZONE/INSTANCE`,
  );
}

function stillThere(
  { instanceId }: InstanceRef,
  { instance, membership }: Ec2Machine,
): LastcallError {
  const inGroup = membership === undefined ? "" : `, ${membership.state} in ${membership.group}`;
  const found = `found it still ${instance.state}${inGroup} at the end of the wait`;
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${instanceId}: ${found}, expected it terminated, check whether a lifecycle hook of its group is waiting`,
    { retryable: true },
  );
}

function impossible(problem: string): Releasability {
  return { kind: "Impossible", problem };
}

interface InGroup extends Pick<Membership, "group" | "weight"> {
  readonly kind: "InGroup";
  readonly desired: "Kept" | "Decremented";
}

/** How an instance is released. */
type ReleaseChoice =
  | InGroup
  | { readonly kind: "Alone" }
  /** The instance's owner does not allow the mode; `problem` says what to set instead. */
  | { readonly kind: "Refused"; readonly problem: string };

/**
 * Chooses how to release an instance in a mode: through the group that owns it, or directly if it
 * has no owner, or none any more since our own action has detached it.
 */
function releaseChoice(
  { instance, membership }: Ec2Machine,
  { mode, isOutOfGroup }: { readonly mode: ReleaseRequest["mode"]; readonly isOutOfGroup: boolean },
): ReleaseChoice {
  const { instanceId, nodePool } = instance;
  if (nodePool !== undefined) {
    const owner = `the instance ${instanceId} belongs to Karpenter (its tag karpenter.sh/nodepool is ${nodePool})`;
    return refused(`${owner}, set instance.release to NodeClaim`);
  }
  if (isOutOfGroup && /^Detach/.test(membership?.state ?? "Detached")) return { kind: "Alone" };
  if (membership === undefined) {
    if (mode === "DeleteInstance") return { kind: "Alone" };
    return refused(
      `the instance ${instanceId} is in no Auto Scaling group, set instance.release to DeleteInstance`,
    );
  }
  const { group, weight } = membership;
  if (mode === "Recreate") return { kind: "InGroup", group, desired: "Kept", weight };
  if (mode === "Delete") return { kind: "InGroup", group, desired: "Decremented", weight };
  const owner = `the instance ${instanceId} is in the Auto Scaling group ${group}`;
  return refused(`${owner}, which would replace it, set instance.release to Recreate or Delete`);
}

/** The setting of a group that prevents the release, as far as it can be read in advance. */
function groupProblem(
  { group, desired: how, weight: share = 1 }: InGroup,
  size: GroupSize | undefined,
): string | undefined {
  if (size === undefined) return undefined;
  const { desired, min } = size;
  // A share that is not known is at least 1.
  if (how === "Decremented" && desired - share < min) {
    return `the Auto Scaling group ${group} would shrink from ${desired} to ${desired - share}, below its minimum of ${min}, lower that or set instance.release to Recreate`;
  }
  if (how === "Kept" && size.suspended.includes("Launch")) {
    return `the Auto Scaling group ${group} would launch no new instance, because its process Launch is suspended, resume that process`;
  }
  return undefined;
}

function refused(problem: string): ReleaseChoice {
  return { kind: "Refused", problem };
}
