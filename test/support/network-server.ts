import { overLimit } from "./aws-limits.ts";
import {
  AwsQueryServer,
  ec2ErrorResponse,
  element,
  listOf,
  membersOf,
  type QueryAnswer,
  type QueryRefusal,
  textElement,
} from "./aws-query-server.ts";
import { isListed } from "./ec2-server.ts";

export interface ServedInterface {
  readonly id: string;
  readonly instance: string;
  readonly vpc: string;
  readonly addresses: readonly string[];
  /** Address blocks that the VPC CNI assigns to pods, such as `10.0.2.0/28`. */
  readonly prefixes: readonly string[];
  groups: readonly string[];
}

export interface ServedInstance {
  readonly id: string;
  readonly vpc: string;
  readonly dnsName: string;
  state: "pending" | "running" | "shutting-down" | "terminated" | "stopped";
}

const faults = {
  Unreachable: { status: 503, code: "Unavailable", text: "The server is overloaded" },
  RateLimited: { status: 503, code: "RequestLimitExceeded", text: "Request limit exceeded." },
  RightMissing: {
    ...{ status: 403, code: "UnauthorizedOperation" },
    text: "You are not authorized to perform this operation.",
  },
} as const satisfies Record<string, QueryRefusal>;

/**
 * EC2 on loopback, as far as network interfaces and security groups need it, in the Query protocol
 * of its model, version 2016-11-15. moto adds groups to an interface and accepts those of another
 * VPC; this server replaces the set, as AWS documents it, and refuses what AWS refuses.
 */
export class NetworkServer extends AwsQueryServer {
  readonly instances: ServedInstance[] = [];
  readonly interfaces: ServedInterface[] = [];
  /** The VPC of each security group. */
  readonly securityGroups = new Map<string, string>();
  readonly calls: { readonly action: string; readonly on: string | undefined }[] = [];
  /** The interface and groups of each dry run of a change. */
  readonly tried: string[] = [];
  /** The tags of each instance. */
  readonly tags = new Map<string, Readonly<Record<string, string>>>();
  /** Groups that may not be set on any interface. */
  readonly deniedGroups = new Set<string>();
  /** Like a third-party endpoint that does not know the parameter. */
  ignoresDryRun = false;
  fault: keyof typeof faults | undefined;
  readonly denied = new Set<string>();
  /** Requests about these are never answered. */
  readonly hanging = new Set<string>();
  /**
   * The groups that EC2 still reports for an interface, because a change has not propagated yet.
   */
  readonly shownGroups = new Map<string, readonly string[]>();
  /** Interfaces that cannot be changed, because an AWS service owns them. */
  readonly managed = new Set<string>();
  /** Instances that an AWS service operates, with their interfaces; see `isListed`. */
  readonly operated = new Set<string>();
  throttleNext = 0;
  pageSize = 1000;

  addInstance(place: number, vpc = "vpc-a"): ServedInstance {
    const id = `i-${place.toString(16).padStart(17, "0")}`;
    const dnsName = `ip-10-0-1-${place}.eu-west-1.compute.internal`;
    const instance: ServedInstance = { id, vpc, dnsName, state: "running" };
    this.instances.push(instance);
    return instance;
  }

  addInterface(
    instance: ServedInstance,
    part: Partial<Pick<ServedInterface, "addresses" | "prefixes" | "groups">> = {},
  ): ServedInterface {
    const id = `eni-${(this.interfaces.length + 1).toString(16).padStart(17, "0")}`;
    const made = { id, instance: instance.id, vpc: instance.vpc };
    const served = { ...made, addresses: [], prefixes: [], groups: ["sg-nodes"], ...part };
    this.interfaces.push(served);
    return served;
  }

  count(action: string): number {
    return this.calls.filter((call) => call.action === action).length;
  }

  protected override async answer(asked: URLSearchParams): Promise<QueryAnswer> {
    const action = asked.get("Action") ?? "";
    const on = asked.get("NetworkInterfaceId") ?? undefined;
    if (isDryRun(asked)) this.tried.push(`${on} ${listOf(asked, "SecurityGroupId").join(" ")}`);
    else this.calls.push({ action, on });
    if (this.hanging.has(action)) await new Promise(() => {});
    const found = this.#refusalOf(action) ?? overLimit(asked) ?? this.#carryOut(action, asked);
    if (typeof found !== "string") return ec2ErrorResponse(found);
    const xml = `<${action}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">${element("requestId", "7c6e177f")}${found}</${action}Response>`;
    return { status: 200, xml };
  }

  #refusalOf(action: string): QueryRefusal | undefined {
    if (this.fault !== undefined) return faults[this.fault];
    if (this.denied.has(action)) return faults.RightMissing;
    if (this.throttleNext === 0) return undefined;
    this.throttleNext -= 1;
    return faults.RateLimited;
  }

  #carryOut(action: string, asked: URLSearchParams): string | QueryRefusal {
    switch (action) {
      case "DescribeInstances":
        return this.#reservations(asked);
      case "DescribeTags":
        return this.#page("tagSet", this.#tagItems(asked), asked);
      case "DescribeNetworkInterfaces":
        return this.#page("networkInterfaceSet", this.#interfaceItems(asked), asked);
      case "DescribeSecurityGroups":
        return this.#groupItems(asked);
      case "ModifyNetworkInterfaceAttribute":
        return this.#modify(asked);
      default:
        return { status: 400, code: "InvalidAction", text: `No action ${action}` };
    }
  }

  #reservations(asked: URLSearchParams): string | QueryRefusal {
    const named = listOf(asked, "InstanceId");
    const missing = named.find((id) => this.instances.every((one) => one.id !== id));
    if (missing !== undefined) return noInstance(missing);
    const ids = [...named, ...filterValues(asked, "instance-id")];
    const found = this.instances.filter(
      ({ id }) => ids.includes(id) && isListed(asked, this.operated.has(id)),
    );
    const items = found.map(({ id, vpc, dnsName, state }) => {
      const item =
        element("instanceId", id) +
        element("instanceState", element("name", state)) +
        element("privateDnsName", dnsName) +
        element("launchTime", "2026-11-20T00:00:00.000Z") +
        element("vpcId", vpc);
      return element("instancesSet", element("item", item));
    });
    return this.#page("reservationSet", items, asked);
  }

  /** As requested, by key and instance. */
  #tagItems(asked: URLSearchParams): readonly string[] {
    const [[key = ""], ids] = [filterValues(asked, "key"), filterValues(asked, "resource-id")];
    return ids
      .filter((id) => this.tags.get(id)?.[key] !== undefined)
      .map((id) => element("resourceId", id) + element("key", key));
  }

  #interfaceItems(asked: URLSearchParams): readonly string[] {
    const instances = filterValues(asked, "attachment.instance-id");
    const ids = filterValues(asked, "network-interface-id");
    const found = this.interfaces.filter(
      ({ id, instance }) =>
        (instances.includes(instance) || ids.includes(id)) &&
        isListed(asked, this.operated.has(instance)),
    );
    return found.map(({ id, instance, vpc, addresses, prefixes, groups }) => {
      const attached = element("instanceId", instance) + element("status", "attached");
      return (
        element("networkInterfaceId", id) +
        element("vpcId", vpc) +
        element("attachment", attached) +
        element("groupSet", itemsOf(this.shownGroups.get(id) ?? groups, "groupId")) +
        element("privateIpAddress", addresses[0]) +
        element("privateIpAddressesSet", itemsOf(addresses, "privateIpAddress")) +
        element("ipv4PrefixSet", itemsOf(prefixes, "ipv4Prefix"))
      );
    });
  }

  #groupItems(asked: URLSearchParams): string | QueryRefusal {
    const ids = listOf(asked, "GroupId");
    const missing = ids.find((id) => !this.securityGroups.has(id));
    if (missing !== undefined) return noSecurityGroup(missing);
    const items = ids.map((id) =>
      element("item", element("groupId", id) + element("vpcId", this.securityGroups.get(id))),
    );
    return element("securityGroupInfo", items.join(""));
  }

  #modify(asked: URLSearchParams): string | QueryRefusal {
    const served = this.interfaces.find(({ id }) => id === asked.get("NetworkInterfaceId"));
    if (served === undefined) {
      const text = `The networkInterface ID '${asked.get("NetworkInterfaceId")}' does not exist`;
      return { status: 400, code: "InvalidNetworkInterfaceID.NotFound", text };
    }
    if (this.managed.has(served.id)) {
      const text = "You do not have permission to access the specified resource.";
      return { status: 400, code: "OperationNotPermitted", text };
    }
    const groups = listOf(asked, "SecurityGroupId");
    if (groups.some((id) => this.deniedGroups.has(id))) return faults.RightMissing;
    for (const id of groups) {
      const vpc = this.securityGroups.get(id);
      if (vpc === undefined) return noSecurityGroup(id);
      if (vpc === served.vpc) continue;
      const text = `You have specified two resources that belong to different networks.`;
      return { status: 400, code: "InvalidParameterValue", text };
    }
    if (isDryRun(asked) && !this.ignoresDryRun) {
      const text = "Request would have succeeded, but DryRun flag is set.";
      return { status: 412, code: "DryRunOperation", text };
    }
    // The set is replaced, never extended.
    served.groups = groups;
    return element("return", "true");
  }

  #page(set: string, items: readonly string[], asked: URLSearchParams): string {
    const from = Number(asked.get("NextToken") ?? 0);
    const most = Math.min(this.pageSize, Number(asked.get("MaxResults") ?? 1000));
    const next = from + most < items.length ? String(from + most) : undefined;
    const some = items.slice(from, from + most).map((item) => element("item", item));
    return element(set, some.join("")) + element("nextToken", next);
  }
}

function isDryRun(asked: URLSearchParams): boolean {
  return asked.get("DryRun") === "true";
}

/** EC2 refuses a request by id, unlike one by a filter, if an id does not exist. */
export function noInstance(id: string): QueryRefusal {
  const text = `The instance ID '${id}' does not exist`;
  return { status: 400, code: "InvalidInstanceID.NotFound", text };
}

function noSecurityGroup(id: string): QueryRefusal {
  const text = `The security group '${id}' does not exist`;
  return { status: 400, code: "InvalidGroup.NotFound", text };
}

function itemsOf(values: readonly string[], part: string): string {
  return values.map((value) => element("item", textElement(part, value))).join("");
}

/** `Filter.1.Name=instance-id`, `Filter.1.Value.1=i-0abc`. */
function filterValues(asked: URLSearchParams, name: string): readonly string[] {
  const filter = membersOf(asked, "Filter").find(({ Name }) => Name === name);
  return Object.entries(filter ?? {}).flatMap(([key, value]) =>
    key.startsWith("Value.") ? value : [],
  );
}
