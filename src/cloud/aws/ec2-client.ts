import {
  DescribeInstanceStatusCommand,
  DescribeInstancesCommand,
  DescribeNetworkInterfacesCommand,
  DescribeSecurityGroupsCommand,
  DescribeTagsCommand,
  EC2Client,
  type Filter,
  type NetworkInterface as FoundInterface,
  type Instance,
  type InstanceStatus,
  ModifyNetworkInterfaceAttributeCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import { instant, type Millis, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  type AwsPurpose,
  clientSettings,
  faultOfAws,
  listIn,
  tokenAfter,
  watchTime,
} from "./aws-client.ts";
import {
  type Ec2,
  type Ec2Instance,
  type Ec2Instances,
  literal,
  mostAskedFor,
  type ScheduledEvent,
  type Tag,
} from "./ec2-machine.ts";
import { addressesIn, type Ec2Network, type NetworkInterface } from "./ec2-network.ts";

const answerLimitMs: Millis = seconds(10);
/** The largest page that EC2 returns. */
const pageSize = 1000;

/** The tag that Karpenter sets. */
const nodePoolKey = "karpenter.sh/nodepool";

/**
 * An account may hide what an AWS service operates, such as the instances of EKS Auto Mode, from
 * all lists that do not set this. Source: EC2 API reference, DescribeInstances.
 */
const withManaged = { IncludeManagedResources: true };

/**
 * All kinds of events that EC2 schedules. Without this filter, every running instance is listed.
 */
const eventCodes = [
  "instance-reboot",
  "instance-retirement",
  "instance-stop",
  "system-maintenance",
  "system-reboot",
];

interface Ec2Page<T> {
  /** Undefined if the response is not EC2's. */
  readonly items: readonly T[] | undefined;
  readonly next: string | undefined;
}

/** EC2's error names for an unknown security group. */
const unknownGroup = /^InvalidGroup|^InvalidSecurityGroupID/;

interface GroupChange {
  readonly interfaceId: string;
  readonly groupIds: readonly string[];
  readonly dryRun: boolean;
}

/** EC2. The AWS client finds credentials, region and endpoint. */
export class Ec2Client implements Ec2, Ec2Instances, Ec2Network {
  readonly #client: EC2Client;

  /** If `region` is undefined, it comes from the environment. */
  constructor({ region }: { readonly region: string | undefined }) {
    this.#client = new EC2Client(clientSettings({ region, answerLimitMs }));
  }

  async scheduledEvents(abortSignal: AbortSignal): Promise<readonly ScheduledEvent[]> {
    const read = async (token: string | undefined): Promise<Ec2Page<InstanceStatus>> => {
      const command = new DescribeInstanceStatusCommand({
        Filters: [{ Name: "event.code", Values: eventCodes }],
        ...withManaged,
        // Includes instances that their event has stopped.
        IncludeAllInstances: true,
        MaxResults: pageSize,
        NextToken: token,
      });
      const answer = await this.#client.send(command, { abortSignal });
      return { items: answer.InstanceStatuses, next: answer.NextToken };
    };
    const statuses = await this.#all(read, "ec2:DescribeInstanceStatus", abortSignal);
    return statuses.flatMap(eventsOf);
  }

  async tagged(
    { key, value }: Tag,
    abortSignal: AbortSignal,
    only?: readonly string[],
  ): Promise<ReadonlySet<string>> {
    const Filters = [
      { Name: "resource-type", Values: ["instance"] },
      { Name: "key", Values: [literal(key)] },
      ...(value === undefined ? [] : [{ Name: "value", Values: [literal(value)] }]),
      ...(only === undefined ? [] : [{ Name: "resource-id", Values: [...only] }]),
    ];
    const read = async (token: string | undefined): Promise<Ec2Page<string>> => {
      const command = new DescribeTagsCommand({ Filters, MaxResults: pageSize, NextToken: token });
      const answer = await this.#client.send(command, { abortSignal });
      const ids = answer.Tags?.flatMap(({ ResourceId }) => ResourceId ?? []);
      return { items: ids, next: answer.NextToken };
    };
    return new Set(await this.#all(read, "ec2:DescribeTags", abortSignal));
  }

  async instances(
    ids: readonly string[],
    abortSignal: AbortSignal,
  ): Promise<readonly Ec2Instance[]> {
    const found: Ec2Instance[] = [];
    for (let from = 0; from < ids.length; from += mostAskedFor) {
      // A filter, because an unknown id in the list of ids would fail the whole request.
      const Values = ids.slice(from, from + mostAskedFor);
      const some = await this.#describe([{ Name: "instance-id", Values }], abortSignal);
      found.push(...some.map(toInstance));
    }
    return found;
  }

  async instance(instanceId: string, abortSignal: AbortSignal): Promise<Ec2Instance | undefined> {
    const command = new DescribeInstancesCommand({ InstanceIds: [instanceId], ...withManaged });
    const action = `read the instance ${instanceId}`;
    const permission = "ec2:DescribeInstances on *";
    const timeOf = watchTime(command);
    try {
      const answer = await this.#client.send(command, { abortSignal });
      const found = listIn(answer.Reservations).flatMap(({ Instances }) => Instances ?? []);
      const one = found.find(({ InstanceId }) => InstanceId === instanceId);
      if (one !== undefined) return { ...toInstance(one), asOf: timeOf() };
    } catch (error) {
      abortSignal.throwIfAborted();
      if (nameOf(error) === "InvalidInstanceID.NotFound") return undefined;
      throw faultOfAws(error, { action, permission, service: "EC2", wanted: "an instance id" });
    }
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${action}: found an empty list, which does not say that it is gone, expected the instance or InvalidInstanceID.NotFound`,
    );
  }

  /**
   * Returns the providerIDs of running instances with the tag that are meant to be nodes: Spot
   * instances and Karpenter's. Others that serve the cluster, such as a bastion, may have the tag
   * as well.
   */
  async nodesOf({ key, value }: Tag, abortSignal: AbortSignal): Promise<readonly string[]> {
    const field = value === undefined ? "tag-key" : `tag:${key}`;
    const tag = { Name: field, Values: [literal(value ?? key)] };
    const running = { Name: "instance-state-name", Values: ["running"] };
    const found = await this.#describe([tag, running], abortSignal);
    return found
      .filter((one) => one.InstanceLifecycle === "spot" || valueIn(one, nodePoolKey) !== undefined)
      .map(({ Placement, InstanceId }) => `aws:///${Placement?.AvailabilityZone}/${InstanceId}`);
  }

  #describe(Filters: Filter[], abortSignal: AbortSignal): Promise<readonly Instance[]> {
    const read = async (token: string | undefined): Promise<Ec2Page<Instance>> => {
      const input = { Filters, ...withManaged, MaxResults: pageSize, NextToken: token };
      const answer = await this.#client.send(new DescribeInstancesCommand(input), { abortSignal });
      const items = answer.Reservations?.flatMap(({ Instances }) => Instances ?? []);
      return { items, next: answer.NextToken };
    };
    return this.#all(read, "ec2:DescribeInstances", abortSignal);
  }

  async terminate(instanceId: string, signal: AbortSignal): Promise<void> {
    const command = new TerminateInstancesCommand({ InstanceIds: [instanceId] });
    await this.#terminate(command, { instanceId, signal });
  }

  async tryTerminate(instanceId: string, signal: AbortSignal): Promise<void> {
    const command = new TerminateInstancesCommand({ InstanceIds: [instanceId], DryRun: true });
    await this.#terminate(command, { instanceId, signal });
  }

  async interfacesOf(
    instanceIds: readonly string[],
    abortSignal: AbortSignal,
  ): Promise<readonly NetworkInterface[]> {
    const found: NetworkInterface[] = [];
    for (let from = 0; from < instanceIds.length; from += mostAskedFor) {
      const Values = instanceIds.slice(from, from + mostAskedFor);
      const read = async (token: string | undefined): Promise<Ec2Page<FoundInterface>> => {
        const command = new DescribeNetworkInterfacesCommand({
          ...withManaged,
          Filters: [{ Name: "attachment.instance-id", Values }],
          MaxResults: pageSize,
          NextToken: token,
        });
        const answer = await this.#client.send(command, { abortSignal });
        return { items: answer.NetworkInterfaces, next: answer.NextToken };
      };
      const interfaces = await this.#all(read, "ec2:DescribeNetworkInterfaces", abortSignal);
      found.push(...interfaces.flatMap(toInterface));
    }
    return found;
  }

  async vpcsOf(
    groupIds: readonly string[],
    abortSignal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> {
    const wanted = `security groups that exist, each of ${groupIds.join(", ")}`;
    const asked = { action: "read the security groups", wanted, unknown: unknownGroup };
    const permission = "ec2:DescribeSecurityGroups on *";
    const answer = await this.#ask({ ...asked, permission }, abortSignal, () => {
      const command = new DescribeSecurityGroupsCommand({ GroupIds: [...groupIds] });
      return this.#client.send(command, { abortSignal });
    });
    const groups = answer.SecurityGroups ?? [];
    return new Map(groups.map(({ GroupId = "", VpcId = "" }) => [GroupId, VpcId]));
  }

  async setSecurityGroups(
    interfaceId: string,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#modify({ interfaceId, groupIds, dryRun: false }, signal);
  }

  async trySecurityGroups(
    interfaceId: string,
    groupIds: readonly string[],
    signal: AbortSignal,
  ): Promise<"Permitted" | "CarriedOut"> {
    return this.#modify({ interfaceId, groupIds, dryRun: true }, signal);
  }

  #modify(
    { interfaceId, groupIds, dryRun }: GroupChange,
    abortSignal: AbortSignal,
  ): Promise<"Permitted" | "CarriedOut"> {
    const action = `replace the security groups of ${interfaceId}`;
    const wanted = "groups that exist, and a network interface that no AWS service manages";
    const asked = { action, wanted, unknown: unknownGroup };
    const on = [interfaceId, ...groupIds].join(" and ");
    const permission = `ec2:ModifyNetworkInterfaceAttribute on ${on}`;
    return this.#ask({ ...asked, permission }, abortSignal, async () => {
      const input = {
        NetworkInterfaceId: interfaceId,
        Groups: [...groupIds],
        ...(dryRun && { DryRun: true }),
      };
      const command = new ModifyNetworkInterfaceAttributeCommand(input);
      try {
        await this.#client.send(command, { abortSignal });
        return "CarriedOut";
      } catch (error) {
        const name = nameOf(error);
        if (name === "DryRunOperation" && dryRun) return "Permitted";
        if (name !== "InvalidNetworkInterfaceID.NotFound") throw error;
        return dryRun ? "Permitted" : "CarriedOut";
      }
    });
  }

  async #ask<T>(
    asked: Omit<AwsPurpose, "service">,
    signal: AbortSignal,
    send: () => Promise<T>,
  ): Promise<T> {
    try {
      return await send();
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, { ...asked, service: "EC2" });
    }
  }

  async #terminate(
    command: TerminateInstancesCommand,
    { instanceId, signal }: { readonly instanceId: string; readonly signal: AbortSignal },
  ): Promise<void> {
    try {
      await this.#client.send(command, { abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      // EC2's error for a dry run that would have succeeded.
      if (nameOf(error) === "DryRunOperation") return;
      throw faultOfAws(error, {
        action: `terminate the instance ${instanceId}`,
        permission: "ec2:TerminateInstances on the instance",
        service: "EC2",
        wanted: "an instance that can be terminated",
      });
    }
  }

  async #all<T>(
    read: (token: string | undefined) => Promise<Ec2Page<T>>,
    permission: string,
    signal: AbortSignal,
  ): Promise<readonly T[]> {
    const items: T[] = [];
    let token: string | undefined;
    try {
      do {
        const page = await read(token);
        items.push(...listIn(page.items));
        token = tokenAfter(token, page.next);
      } while (token !== undefined);
      return items;
    } catch (error) {
      signal.throwIfAborted();
      throw faultOfAws(error, {
        action: `call ${permission}`,
        permission: `${permission} on *`,
        service: "EC2",
        wanted: "a region and endpoint of EC2",
      });
    }
  }
}

/** EC2's name for an error. */
function nameOf(error: unknown): unknown {
  return (error as { readonly name?: unknown } | undefined)?.name;
}

function toInterface(found: FoundInterface): readonly NetworkInterface[] {
  const { NetworkInterfaceId: id, Attachment, VpcId: vpc } = found;
  const instanceId = Attachment?.InstanceId;
  if (id === undefined || instanceId === undefined || vpc === undefined) return [];
  const { PrivateIpAddresses = [], Ipv6Addresses = [], Ipv4Prefixes = [], Groups = [] } = found;
  const addresses = [
    ...PrivateIpAddresses.flatMap(({ PrivateIpAddress }) => PrivateIpAddress ?? []),
    ...Ipv6Addresses.flatMap(({ Ipv6Address }) => Ipv6Address ?? []),
    ...Ipv4Prefixes.flatMap(({ Ipv4Prefix }) => addressesIn(Ipv4Prefix ?? "")),
  ];
  return [
    { id, instanceId, vpc, addresses, groupIds: Groups.flatMap(({ GroupId }) => GroupId ?? []) },
  ];
}

function toInstance(found: Instance): Ec2Instance {
  const { InstanceId, State, LaunchTime, PrivateDnsName, PrivateIpAddress } = found;
  const launchedMs = LaunchTime?.getTime() ?? Number.NaN;
  return {
    instanceId: InstanceId ?? "",
    state: State?.Name ?? "",
    launchedAt: Number.isFinite(launchedMs) ? instant(launchedMs) : undefined,
    dnsName: PrivateDnsName || undefined,
    address: PrivateIpAddress || undefined,
    nodePool: valueIn(found, nodePoolKey),
    clusterTag: clusterTagOf(found),
  };
}

function valueIn({ Tags = [] }: Instance, key: string): string | undefined {
  return Tags.find(({ Key }) => Key === key)?.Value;
}

/**
 * The value of `kubernetes.io/cluster/NAME` is `owned` or `shared`; EKS and Karpenter also set tags
 * with the cluster's name as their value. If two clusters share an instance, its tags do not tell
 * which one this is.
 */
function clusterTagOf(found: Instance): Tag | undefined {
  const keys = (found.Tags ?? []).flatMap(({ Key = "" }) =>
    Key.startsWith("kubernetes.io/cluster/") ? Key : [],
  );
  const [key, ...others] = keys;
  if (key !== undefined) return others.length === 0 ? { key } : undefined;
  for (const named of ["eks:cluster-name", "eks:eks-cluster-name"]) {
    const value = valueIn(found, named);
    if (value !== undefined) return { key: named, value };
  }
  return undefined;
}

function eventsOf({ InstanceId, Events = [] }: InstanceStatus): readonly ScheduledEvent[] {
  return Events.map((event) => {
    const atMs = event.NotBefore?.getTime() ?? Number.NaN;
    return {
      instance: InstanceId,
      id: event.InstanceEventId,
      code: event.Code,
      description: event.Description,
      notBeforeAt: Number.isFinite(atMs) ? instant(atMs) : undefined,
    };
  });
}
