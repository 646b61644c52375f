import type {
  InstanceReleaser,
  MachineState,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud/instances.ts";
import { minutes } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import {
  type LeavingMachine,
  type ReleaseLoopOptions,
  releaseByLooking,
  type Standing,
} from "../release/release-loop.ts";
import {
  type Ec2Instances,
  type Ec2Machine,
  type GroupSize,
  type InRegion,
  machineIdOf,
  type ScalingGroups,
  stageOf,
} from "./ec2-machine.ts";
import { findInstanceRef, type InstanceRef } from "./instance-id.ts";

export interface Ec2ReleaserOptions extends ReleaseLoopOptions {
  readonly instancesIn: InRegion<Ec2Instances>;
  readonly groupsIn: InRegion<ScalingGroups>;
}

/**
 * A group at which the permission was missing is not tried for so long: one node drained in vain is
 * enough.
 */
const deniedForMs = minutes(30);

/**
 * Releases instances of EC2, by their Auto Scaling group where they are in one. An abort rejects
 * with the signal's reason and leaves AWS to finish what was asked; the same request takes it up
 * again.
 */
export class Ec2Releaser implements InstanceReleaser {
  readonly #options: Ec2ReleaserOptions;
  /** By group: what was told when the permission was missing, and until when that counts. */
  readonly #denied = new Map<string, { readonly problem: string; readonly untilMs: number }>();

  constructor(options: Ec2ReleaserOptions) {
    this.#options = options;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const machine = await this.#look(instanceRefOf(providerID), signal);
    if (machine === undefined || machine.instance.state === "terminated") return { kind: "Absent" };
    const { instance } = machine;
    // While its group waits for a lifecycle hook, EC2 still says that it runs.
    const running = standingOf(machine) === "Staying";
    return { kind: "Present", id: machineIdOf(instance), bornAt: instance.launchedAt, running };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = instanceRefOf(question.providerID);
    signal.throwIfAborted();
    const machine = await this.#look(ref, signal);
    if (machine === undefined) return impossible(`EC2 has no instance ${ref.instanceId}`);
    // It is going, whoever asked for that: nothing has to be permitted any more.
    if (standingOf(machine) !== "Staying") return { kind: "Possible", permission: "Unknown" };
    const choice = releaseChoice(machine, question.mode);
    switch (choice.kind) {
      case "Refused":
        return impossible(choice.problem);
      case "InGroup":
        return this.#checkGroup(ref, choice, signal);
      case "Alone":
        return this.#checkAlone(ref, signal);
    }
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    signal.throwIfAborted();
    const ref = instanceRefOf(request.providerID);
    const machine: LeavingMachine<Ec2Machine> = {
      look: (until) => this.#look(ref, until),
      standing: (seen) =>
        machineIdOf(seen.instance) === request.machineId ? standingOf(seen) : "Replaced",
      act: (seen, bounds) => this.#act(ref, releaseChoice(seen, request.mode), bounds.signal),
      stillThere: (seen) => stillThere(ref, seen),
    };
    return releaseByLooking({ machine, lastLook: request.lastLook }, this.#options, signal);
  }

  async #look(ref: InstanceRef, signal: AbortSignal): Promise<Ec2Machine | undefined> {
    const { instanceId, region } = ref;
    const [instance] = await this.#options.instancesIn(region).instances([instanceId], signal);
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
          this.#noteDenial(ref, choice.group, error);
          throw error;
        }
    }
  }

  #noteDenial({ region }: InstanceRef, group: string, error: unknown): void {
    if (!isLastcallError(error) || error.code !== "CLOUD_RIGHT_MISSING") return;
    const permission = "autoscaling:TerminateInstanceInAutoScalingGroup";
    this.#denied.set(`${region} ${group}`, {
      problem: `the permission ${permission} was missing on the Auto Scaling group ${group} at the last release, grant it (docs/cloud/aws.md#rights); it is tried again within half an hour`,
      untilMs: this.#options.clock.monotonic() + deniedForMs,
    });
  }

  /** Whether the permission is there Auto Scaling does not tell: its call has no dry run. */
  async #checkGroup(
    { region }: InstanceRef,
    choice: Extract<ReleaseChoice, { readonly kind: "InGroup" }>,
    signal: AbortSignal,
  ): Promise<Releasability> {
    const denied = this.#denied.get(`${region} ${choice.group}`);
    if (denied !== undefined && this.#options.clock.monotonic() < denied.untilMs) {
      return impossible(denied.problem);
    }
    const size = await this.#options.groupsIn(region).size(choice.group, signal);
    const problem = groupProblem(choice, size);
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

/** In a hook at termination an instance runs on until the hook is completed or times out. */
function standingOf({ instance, membership }: Ec2Machine): Exclude<Standing, "Replaced"> {
  const stage = stageOf(instance);
  if (stage !== "Running") return stage;
  const state = membership?.state ?? "";
  // Retained: its hook was abandoned, and the group waits for another request.
  const isLeaving = /(^|:)Terminat/.test(state) && !state.endsWith(":Retained");
  return isLeaving ? "Leaving" : "Staying";
}

/** Throws CLOUD_REFUSED for what is no instance's providerID. */
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
  const found = `found it ${instance.state}${inGroup} after the whole wait`;
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${instanceId}: ${found}, expected it terminated (does a lifecycle hook of its group wait?)`,
    { retryable: true },
  );
}

function impossible(problem: string): Releasability {
  return { kind: "Impossible", problem };
}

/** How an instance is released. */
type ReleaseChoice =
  | {
      readonly kind: "InGroup";
      readonly group: string;
      readonly desired: "Kept" | "Decremented";
    }
  | { readonly kind: "Alone" }
  /** Its owner does not allow the mode; `problem` says what to write instead. */
  | { readonly kind: "Refused"; readonly problem: string };

/**
 * By whom an instance goes in a mode: by the group that owns it, or directly where it has no owner.
 */
function releaseChoice(
  { instance, membership }: Ec2Machine,
  mode: ReleaseRequest["mode"],
): ReleaseChoice {
  const { instanceId, nodePool } = instance;
  if (nodePool !== undefined) {
    const owner = `the instance ${instanceId} is Karpenter's (its tag karpenter.sh/nodepool is ${nodePool})`;
    return refused(`${owner}, set instance.release to NodeClaim`);
  }
  if (membership === undefined) {
    if (mode === "DeleteInstance") return { kind: "Alone" };
    return refused(
      `the instance ${instanceId} is in no Auto Scaling group, set instance.release to DeleteInstance`,
    );
  }
  const { group } = membership;
  if (mode === "Recreate") return { kind: "InGroup", group, desired: "Kept" };
  if (mode === "Delete") return { kind: "InGroup", group, desired: "Decremented" };
  const owner = `the instance ${instanceId} is in the Auto Scaling group ${group}`;
  return refused(
    `${owner}, which would replace it when it finds it gone, set instance.release to Recreate or Delete`,
  );
}

/** What of a group's own settings stands in the way, as far as it can be seen before. */
function groupProblem(
  { group, desired: how }: { readonly group: string; readonly desired: "Kept" | "Decremented" },
  size: GroupSize | undefined,
): string | undefined {
  if (size === undefined) return undefined;
  if (how === "Decremented" && size.desired <= size.min) {
    return `the Auto Scaling group ${group} is at its minimum of ${size.min}, lower that or set instance.release to Recreate`;
  }
  if (how === "Kept" && size.suspended.includes("Launch")) {
    return `the Auto Scaling group ${group} would make no new instance, its process Launch is suspended, resume it`;
  }
  return undefined;
}

function refused(problem: string): ReleaseChoice {
  return { kind: "Refused", problem };
}
