import {
  AutoScalingClient,
  type AutoScalingInstanceDetails,
  CompleteLifecycleActionCommand,
  DescribeAutoScalingGroupsCommand,
  type DescribeAutoScalingGroupsCommandInput,
  DescribeAutoScalingInstancesCommand,
  DescribeLifecycleHooksCommand,
  DetachInstancesCommand,
  RecordLifecycleActionHeartbeatCommand,
  TerminateInstanceInAutoScalingGroupCommand,
} from "@aws-sdk/client-auto-scaling";
import type { HookEnd, HookLimits, LifecycleHooks } from "../../contracts/cloud.ts";
import type { LifecycleHook } from "../../core/notice/instance-notice.ts";
import type { HookResult } from "../../core/policy/policy.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { clientSettings, faultOfAws, listIn } from "./aws-client.ts";
import type { GroupSize, Membership, ScalingGroups, Tag } from "./ec2-machine.ts";

const answerLimitMs: Millis = seconds(10);
/** The most instances that one Auto Scaling request accepts and returns. */
const mostAskedFor = 50;

/** The most groups that one request may name, and the most in one response. */
const mostGroups = 100;

/**
 * A group with one of these tags launches nodes: EKS created it, cluster-autoscaler may scale it,
 * or kOps created it for nodes.
 */
const nodeGroupTags = new Set([
  "eks:nodegroup-name",
  "k8s.io/cluster-autoscaler/enabled",
  "k8s.io/role/node",
]);

/** An Auto Scaling group and its instances. */
export interface NodeGroup {
  readonly name: string;
  /** Whether the group's own tags say that its instances become nodes. */
  readonly isOfNodes: boolean;
  /** The ids of all instances. */
  readonly members: ReadonlySet<string>;
  /** The providerIDs of the instances in service. */
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

/** EC2 Auto Scaling. The AWS client finds credentials, region and endpoint. */
export class AutoScaling implements LifecycleHooks, ScalingGroups {
  readonly #client: AutoScalingClient;

  /** `region`: the groups' region; if undefined, it comes from the environment. */
  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new AutoScalingClient(clientSettings({ region, answerLimitMs, maxAttempts: 1 }));
  }

  async membership(instanceId: string, signal: AbortSignal): Promise<Membership | undefined> {
    const found = await this.members([instanceId], signal);
    return found.find((one) => one.instanceId === instanceId);
  }

  /** Returns the instances that are in a group, with one request per 50. */
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
      members.push(...found.flatMap(toMember));
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
    const countsInstances = (one.DesiredCapacityType ?? "units") === "units";
    return { desired: one.DesiredCapacity, min: one.MinSize, countsInstances, suspended };
  }

  /** Returns the groups with these names or this tag; of those with the tag, one page only. */
  async groups(
    which: { readonly names: readonly string[] } | { readonly tag: Tag },
    signal: AbortSignal,
  ): Promise<readonly NodeGroup[]> {
    if ("tag" in which) return this.#groupsBy({ Filters: [filterOf(which.tag)] }, signal);
    const found: NodeGroup[] = [];
    for (let from = 0; from < which.names.length; from += mostGroups) {
      const AutoScalingGroupNames = which.names.slice(from, from + mostGroups);
      found.push(...(await this.#groupsBy({ AutoScalingGroupNames }, signal)));
    }
    return found;
  }

  async #groupsBy(
    input: Pick<DescribeAutoScalingGroupsCommandInput, "AutoScalingGroupNames" | "Filters">,
    abortSignal: AbortSignal,
  ): Promise<readonly NodeGroup[]> {
    const permission = "autoscaling:DescribeAutoScalingGroups";
    const found = await this.#look(permission, abortSignal, async () => {
      const command = new DescribeAutoScalingGroupsCommand({ ...input, MaxRecords: mostGroups });
      return (await this.#client.send(command, { abortSignal })).AutoScalingGroups;
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
   * Auto Scaling returns an empty list for anything that does not exist.
   */
  async #look<T>(
    permission: string,
    signal: AbortSignal,
    ask: () => Promise<readonly T[] | undefined>,
  ): Promise<readonly T[]> {
    try {
      return listIn(await ask());
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, {
        action: `call ${permission}`,
        permission: `${permission} on *`,
        service: "EC2 Auto Scaling",
        wanted: "a region and endpoint of EC2 Auto Scaling",
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

  /** Detaches an instance from its group; false if it is in none or is already leaving it. */
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

  /** Completes or extends a lifecycle hook, and returns the hook's state. */
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

function toMember(found: AutoScalingInstanceDetails): readonly Member[] {
  const { InstanceId: instanceId, AutoScalingGroupName: group, LifecycleState: state = "" } = found;
  if (instanceId === undefined || group === undefined) return [];
  const weight = Number(found.WeightedCapacity);
  return [{ instanceId, group, state, ...(weight > 0 && { weight }) }];
}

interface HookInput {
  readonly AutoScalingGroupName: string;
  readonly LifecycleHookName: string;
  readonly LifecycleActionToken: string | undefined;
  readonly InstanceId: string;
}

/**
 * The limit of extending a hook by heartbeats. Source: Auto Scaling API,
 * LifecycleHook.GlobalTimeout.
 */
const longestS = 48 * 3600;
const mostHeartbeats = 100;

/**
 * Auto Scaling uses one error code for all refusals; the message is "No active Lifecycle Action
 * found …" or "… name not found". Undefined if the error is something else.
 */
function endOf(error: unknown): HookEnd | undefined {
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown };
  if (name !== "ValidationError" || typeof message !== "string") return undefined;
  if (/no active lifecycle action/i.test(message)) return "Over";
  return /not found/i.test(message) ? "NotFound" : undefined;
}
