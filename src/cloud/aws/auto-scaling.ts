import {
  AutoScalingClient,
  CompleteLifecycleActionCommand,
  DescribeAutoScalingGroupsCommand,
  DescribeAutoScalingInstancesCommand,
  DescribeLifecycleHooksCommand,
  DetachInstancesCommand,
  RecordLifecycleActionHeartbeatCommand,
  TerminateInstanceInAutoScalingGroupCommand,
} from "@aws-sdk/client-auto-scaling";
import type { HookEnd, HookLimits, LifecycleHooks } from "../../contracts/cloud/instances.ts";
import type { LifecycleHook } from "../../core/notice/instance-notice.ts";
import type { HookResult } from "../../core/policy/policy.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { clientSettings, faultOfAws } from "./aws-client.ts";
import type { GroupSize, Membership, ScalingGroups, Tag } from "./ec2-machine.ts";

const answerLimitMs: Millis = seconds(10);
/** The most that Auto Scaling takes, and gives, in one request about instances. */
const mostAskedFor = 50;

/** In one answer about groups. */
const mostGroups = 100;

/**
 * By one of these the machines of a group are meant to be nodes: EKS has made it, the autoscaler
 * may fill it, or kOps has made it for nodes.
 */
const nodeGroupTags = new Set([
  "eks:nodegroup-name",
  "k8s.io/cluster-autoscaler/enabled",
  "k8s.io/role/node",
]);

/** A group, and the machines that it has. */
export interface NodeGroup {
  readonly name: string;
  /** Whether its own tags say that its machines are to be nodes. */
  readonly isOfNodes: boolean;
  /** The ids of all its instances. */
  readonly members: ReadonlySet<string>;
  /** The providerIDs of those in service. */
  readonly inService: readonly string[];
}

function filterOf({ key, value }: Tag) {
  return value === undefined
    ? { Name: "tag-key", Values: [key] }
    : { Name: `tag:${key}`, Values: [value] };
}

interface Member extends Membership {
  readonly instanceId: string;
}

/** EC2 Auto Scaling, with credentials, region and endpoint as AWS' client finds them. */
export class AutoScaling implements LifecycleHooks, ScalingGroups {
  readonly #client: AutoScalingClient;

  /** `region`: where the groups are; absent: the environment says it. */
  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new AutoScalingClient(clientSettings({ region, answerLimitMs, maxAttempts: 1 }));
  }

  async membership(instanceId: string, signal: AbortSignal): Promise<Membership | undefined> {
    const found = await this.members([instanceId], signal);
    return found.find((one) => one.instanceId === instanceId);
  }

  /** Those of these that are in a group; in a request for each 50. */
  async members(
    instanceIds: readonly string[],
    abortSignal: AbortSignal,
  ): Promise<readonly Member[]> {
    const permission = "autoscaling:DescribeAutoScalingInstances";
    const members: Member[] = [];
    for (let from = 0; from < instanceIds.length; from += mostAskedFor) {
      const InstanceIds = instanceIds.slice(from, from + mostAskedFor);
      const found = await this.#look(permission, abortSignal, async () => {
        const command = new DescribeAutoScalingInstancesCommand({ InstanceIds });
        return (await this.#client.send(command, { abortSignal })).AutoScalingInstances;
      });
      for (const { InstanceId, AutoScalingGroupName: group, LifecycleState: state = "" } of found) {
        if (InstanceId === undefined || group === undefined) continue;
        members.push({ instanceId: InstanceId, group, state });
      }
    }
    return members;
  }

  async size(group: string, abortSignal: AbortSignal): Promise<GroupSize | undefined> {
    const permission = "autoscaling:DescribeAutoScalingGroups";
    const found = await this.#look(permission, abortSignal, async () => {
      const command = new DescribeAutoScalingGroupsCommand({ AutoScalingGroupNames: [group] });
      return (await this.#client.send(command, { abortSignal })).AutoScalingGroups;
    });
    const one = found.find(({ AutoScalingGroupName }) => AutoScalingGroupName === group);
    if (one?.DesiredCapacity === undefined || one.MinSize === undefined) return undefined;
    const suspended = (one.SuspendedProcesses ?? []).flatMap(
      ({ ProcessName }) => ProcessName ?? [],
    );
    return { desired: one.DesiredCapacity, min: one.MinSize, suspended };
  }

  /** The groups of these names, or with this tag; one page of them. */
  async groups(
    which: { readonly names: readonly string[] } | { readonly tag: Tag },
    signal: AbortSignal,
  ): Promise<readonly NodeGroup[]> {
    const input =
      "names" in which
        ? { AutoScalingGroupNames: [...which.names], MaxRecords: mostGroups }
        : { Filters: [filterOf(which.tag)], MaxRecords: mostGroups };
    const found = await this.#look("autoscaling:DescribeAutoScalingGroups", signal, async () => {
      const command = new DescribeAutoScalingGroupsCommand(input);
      return (await this.#client.send(command, { abortSignal: signal })).AutoScalingGroups;
    });
    return found.map(({ AutoScalingGroupName = "", Instances = [], Tags = [] }) => ({
      name: AutoScalingGroupName,
      isOfNodes: Tags.some(({ Key = "" }) => nodeGroupTags.has(Key)),
      members: new Set(Instances.flatMap(({ InstanceId }) => InstanceId ?? [])),
      inService: Instances.filter(({ LifecycleState }) => LifecycleState === "InService").map(
        ({ AvailabilityZone, InstanceId }) => `aws:///${AvailabilityZone}/${InstanceId}`,
      ),
    }));
  }

  async terminate(
    instanceId: string,
    { group, desired }: { readonly group: string; readonly desired: "Kept" | "Decremented" },
    signal: AbortSignal,
  ): Promise<void> {
    const command = new TerminateInstanceInAutoScalingGroupCommand({
      InstanceId: instanceId,
      ShouldDecrementDesiredCapacity: desired === "Decremented",
    });
    try {
      await this.#client.send(command, { abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, {
        action: `terminate the instance ${instanceId} in the Auto Scaling group ${group}`,
        permission: "autoscaling:TerminateInstanceInAutoScalingGroup on the group",
        service: "EC2 Auto Scaling",
        wanted: "a member of the group that can be terminated",
      });
    }
  }

  /**
   * Of what does not exist Auto Scaling gives an empty list; without a list the answer is not its
   * own.
   */
  async #look<T>(
    permission: string,
    signal: AbortSignal,
    ask: () => Promise<readonly T[] | undefined>,
  ): Promise<readonly T[]> {
    try {
      const found = await ask();
      if (found === undefined) throw new TypeError("the answer holds no list");
      return found;
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, {
        action: `ask EC2 Auto Scaling by ${permission}`,
        permission: `${permission} on *`,
        service: "EC2 Auto Scaling",
        wanted: "a region and an endpoint of Auto Scaling",
      });
    }
  }

  async complete(hook: LifecycleHook, result: HookResult, signal: AbortSignal): Promise<HookEnd> {
    const asked = { action: "complete", permission: "CompleteLifecycleAction" };
    return this.#tell(hook, asked, signal, async (input, abortSignal) => {
      const LifecycleActionResult = result === "Continue" ? "CONTINUE" : "ABANDON";
      const command = new CompleteLifecycleActionCommand({ ...input, LifecycleActionResult });
      await this.#client.send(command, { abortSignal });
    });
  }

  async extend(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd> {
    const asked = { action: "extend", permission: "RecordLifecycleActionHeartbeat" };
    return this.#tell(hook, asked, signal, async (input, abortSignal) => {
      const command = new RecordLifecycleActionHeartbeatCommand(input);
      await this.#client.send(command, { abortSignal });
    });
  }

  async limits(
    { group, name }: LifecycleHook,
    signal: AbortSignal,
  ): Promise<HookLimits | undefined> {
    const permission = "autoscaling:DescribeLifecycleHooks";
    const found = await this.#look(permission, signal, async () => {
      const input = { AutoScalingGroupName: group, LifecycleHookNames: [name] };
      const command = new DescribeLifecycleHooksCommand(input);
      try {
        return (await this.#client.send(command, { abortSignal: signal })).LifecycleHooks;
      } catch (error) {
        if (endOf(error) === "NotFound") return [];
        throw error;
      }
    });
    const one = found.find(({ LifecycleHookName }) => LifecycleHookName === name);
    if (one?.HeartbeatTimeout === undefined) return undefined;
    const longest = one.GlobalTimeout ?? Math.min(longestS, one.HeartbeatTimeout * mostHeartbeats);
    return { heartbeatMs: seconds(one.HeartbeatTimeout), longestMs: seconds(longest) };
  }

  /** Takes an instance out of its group; false where it is in none, or leaves it already. */
  async detach(
    instanceId: string,
    { group, desired }: { readonly group: string; readonly desired: "Kept" | "Decremented" },
    signal: AbortSignal,
  ): Promise<boolean> {
    const command = new DetachInstancesCommand({
      AutoScalingGroupName: group,
      InstanceIds: [instanceId],
      ShouldDecrementDesiredCapacity: desired === "Decremented",
    });
    try {
      await this.#client.send(command, { abortSignal: signal });
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const { name, message } = (error ?? {}) as {
        readonly name?: unknown;
        readonly message?: unknown;
      };
      if (
        name === "ValidationError" &&
        /not (part of|in) (the )?Auto Scaling group/i.test(String(message))
      ) {
        return false;
      }
      throw faultOfAws(error, {
        action: `detach the instance ${instanceId} from the Auto Scaling group ${group}`,
        permission: "autoscaling:DetachInstances on the group",
        service: "EC2 Auto Scaling",
        wanted: "a member of the group that is in service",
      });
    }
  }

  /** What is said of a wait, and how it stands with it. */
  async #tell(
    { group, name, machine, token }: LifecycleHook,
    asked: { readonly action: string; readonly permission: string },
    signal: AbortSignal,
    send: (input: HookInput, signal: AbortSignal) => Promise<void>,
  ): Promise<HookEnd> {
    const input: HookInput = {
      AutoScalingGroupName: group,
      LifecycleHookName: name,
      LifecycleActionToken: token,
      InstanceId: machine,
    };
    try {
      await send(input, signal);
      return "Completed";
    } catch (error) {
      signal.throwIfAborted();
      const end = endOf(error);
      if (end !== undefined) return end;
      throw faultOfAws(error, {
        action: `${asked.action} the lifecycle hook ${name} of the group ${group}`,
        permission: `autoscaling:${asked.permission} on the group`,
        service: "EC2 Auto Scaling",
        wanted: "a group that has this hook",
      });
    }
  }
}

interface HookInput {
  readonly AutoScalingGroupName: string;
  readonly LifecycleHookName: string;
  readonly LifecycleActionToken: string | undefined;
  readonly InstanceId: string;
}

/** The longest wait by heartbeats. Source: Auto Scaling API, LifecycleHook.GlobalTimeout. */
const longestS = 48 * 3600;
const mostHeartbeats = 100;

/**
 * Auto Scaling has one code for all that it refuses, and says "No active Lifecycle Action found …"
 * or "… name not found" with it. Undefined: it has not refused.
 */
function endOf(error: unknown): HookEnd | undefined {
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown };
  if (name !== "ValidationError" || typeof message !== "string") return undefined;
  if (/no active lifecycle action/i.test(message)) return "Over";
  return /not found/i.test(message) ? "NotFound" : undefined;
}
