import { type Instant, instant } from "../../src/core/time/time.ts";
import { overLimit } from "./aws-limits.ts";
import {
  AwsQueryServer,
  element,
  errorResponse,
  listOf,
  membersOf,
  type QueryAnswer,
  type QueryRefusal,
  textElement,
} from "./aws-query-server.ts";
import type { Bucket } from "./bucket.ts";
import { classicItem, groupItem, instanceItem } from "./load-balancer-items.ts";

export interface ServedGroup {
  readonly arn: string;
  readonly type: "instance" | "ip" | "lambda" | "alb";
  readonly protocol: "HTTP" | "QUIC" | "TCP_QUIC";
  /** Its addresses are not in its VPC, as those of a peered one. */
  readonly isOutsideVpc: boolean;
  readonly vpc: string;
  readonly port: number;
  readonly tags: Readonly<Record<string, string>>;
  /** How long a deregistered target is `draining`. */
  drainMs: number;
  readonly targets: ServedTarget[];
}

export interface ServedTarget {
  readonly id: string;
  readonly port: number;
  readonly zone?: string | undefined;
  readonly quicServerId?: string | undefined;
  /** Absent: it receives traffic. */
  drainedAt?: Instant | undefined;
}

export interface ServedClassic {
  readonly name: string;
  readonly instances: Set<string>;
  /** Instances that are deregistered but still have connections. */
  readonly draining: Map<string, Instant>;
  drainMs: number;
}

export interface ServedCall {
  readonly action: string;
  /** The target group's ARN or the classic load balancer's name, if the call names one. */
  readonly on: string | undefined;
  /** The ids of the targets in the call. */
  readonly targets: readonly string[];
  readonly atMs: number;
  /** Whether it was carried out. */
  isTaken: boolean;
}

const newVersion = "2015-12-01";
const faults = {
  Unreachable: { status: 503, code: "ServiceUnavailable", text: "The service is unavailable." },
  RateLimited: { status: 400, code: "Throttling", text: "Rate exceeded" },
  RightMissing: {
    ...{ status: 403, code: "AccessDenied" },
    text: "User: arn:aws:iam::123456789012:user/x is not authorized to perform this action",
  },
} as const satisfies Record<string, QueryRefusal>;

/**
 * Both APIs of Elastic Load Balancing on loopback: target groups (2015-12-01) and classic load
 * balancers (2012-06-01), as far as targets need them. Unlike moto, it paginates, records each
 * registered port, drains over time, throttles, denies, and accepts the deregistration of an absent
 * target, as AWS documents it. Its errors are those of AWS's model
 * (test/data/aws/api-examples.json).
 */
export class LoadBalancerServer extends AwsQueryServer {
  readonly groups: ServedGroup[] = [];
  readonly classics: ServedClassic[] = [];
  readonly calls: ServedCall[] = [];
  fault: keyof typeof faults | undefined;
  /** Responses lack their list, or every entry of it. */
  listless: "NoList" | "Empty" | undefined;
  readonly denied = new Set<string>();
  /** Refuses targets that are not registered, as some AWS-compatible servers do. */
  refusesAbsent = false;
  /** Instances that EC2 no longer knows: classic load balancers refuse requests that name one. */
  readonly terminated = new Set<string>();
  /** Requests about these are never answered. */
  readonly hanging = new Set<string>();
  /** How many of the next requests are throttled. */
  throttleNext = 0;
  pageSize = 400;
  /** The account's quota of targets in a group. */
  mostTargets = 1000;
  /** The account's rate limit for changes of targets; absent: unlimited. */
  changes: Bucket | undefined;
  /** The same for reads. */
  looks: Bucket | undefined;
  /** How long each response takes. */
  latencyMs = 0;
  /** No request is answered until this resolves. */
  held: Promise<void> | undefined;
  /** The largest number of requests that have been waiting for a response at once. */
  mostAtOnce = 0;
  #atOnce = 0;
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    super();
    this.#now = now;
  }

  addGroup(name: string, group: Partial<Omit<ServedGroup, "arn">> = {}): ServedGroup {
    const id = (this.groups.length + 1).toString(16).padStart(16, "0");
    const made: ServedGroup = {
      arn: `arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/${name}/${id}`,
      ...{ type: "instance", protocol: "HTTP", isOutsideVpc: false, vpc: "vpc-a" },
      ...{ port: 80, tags: {}, drainMs: 0, targets: [] },
      ...group,
    };
    this.groups.push(made);
    return made;
  }

  addClassic(name: string, instances: readonly string[], drainMs = 0): ServedClassic {
    const made = { name, instances: new Set(instances), draining: new Map(), drainMs };
    this.classics.push(made);
    return made;
  }

  count(action: string): number {
    return this.calls.filter((call) => call.action === action).length;
  }

  /** The targets that receive traffic, as `ID:PORT`. */
  serving(group: ServedGroup): readonly string[] {
    const up = group.targets.filter(({ drainedAt }) => drainedAt === undefined);
    return up.map(({ id, port }) => `${id}:${port}`);
  }

  protected override async answer(asked: URLSearchParams): Promise<QueryAnswer> {
    const action = asked.get("Action") ?? "";
    const on = asked.get("TargetGroupArn") ?? asked.get("LoadBalancerName") ?? undefined;
    const targets = membersOf(asked, "Targets.member").map(({ Id = "" }) => Id);
    const call: ServedCall = { action, on, targets, atMs: this.#now(), isTaken: false };
    this.calls.push(call);
    if (this.hanging.has(action)) await new Promise(() => {});
    this.#atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce);
    await this.held;
    if (this.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, this.latencyMs));
    this.#atOnce -= 1;
    const version = asked.get("Version") ?? "";
    const namespace = `http://elasticloadbalancing.amazonaws.com/doc/${version}/`;
    const found =
      this.#refusalOf(action) ?? overLimit(asked) ?? this.#carryOut(action, version, asked);
    if (typeof found !== "string") return errorResponse(found, namespace);
    call.isTaken = true;
    const isListless = this.listless !== undefined && action.startsWith("Describe");
    const nothing = this.listless === "Empty" ? element(listNames[action] ?? "", "") : "";
    const body = isListless ? nothing : found;
    const xml =
      `<${action}Response xmlns="${namespace}">${element(`${action}Result`, body)}` +
      `<ResponseMetadata><RequestId>7c6e177f</RequestId></ResponseMetadata></${action}Response>`;
    return { status: 200, xml };
  }

  #refusalOf(action: string): QueryRefusal | undefined {
    if (this.fault !== undefined) return faults[this.fault];
    if (this.denied.has(action)) return faults.RightMissing;
    const bucket = /^(Der|R)egisterTargets$/.test(action) ? this.changes : this.looks;
    if (bucket?.take(this.#now()) === false) return faults.RateLimited;
    if (this.throttleNext === 0) return undefined;
    this.throttleNext -= 1;
    return faults.RateLimited;
  }

  #carryOut(action: string, version: string, asked: URLSearchParams): string | QueryRefusal {
    const isNew = version === newVersion;
    const known = isNew ? this.#ofTargetGroups(action, asked) : this.#ofClassics(action, asked);
    return known ?? { status: 400, code: "InvalidAction", text: `No action ${action}` };
  }

  #ofTargetGroups(action: string, asked: URLSearchParams): string | QueryRefusal | undefined {
    if (action === "DescribeTargetGroups") {
      return this.#page("TargetGroups", this.groups.map(groupItem), asked);
    }
    if (action === "DescribeTags") return this.#tags(listOf(asked, "ResourceArns.member"));
    const group = this.groups.find(({ arn }) => arn === asked.get("TargetGroupArn"));
    if (!/^(DescribeTargetHealth|(Der|R)egisterTargets)$/.test(action)) return undefined;
    if (group === undefined) return noGroup;
    this.#forgetDrained(group);
    const targets = membersOf(asked, "Targets.member").map((one) => ({
      id: one.Id ?? "",
      port: one.Port === undefined ? group.port : Number(one.Port),
      zone: one.AvailabilityZone,
      quicServerId: one.QuicServerId,
    }));
    if (targets.some(({ id }) => !isTarget(group, id))) return invalidTarget(group);
    const isThere = (target: ServedTarget) => group.targets.some((one) => isSame(one, target));
    if (this.refusesAbsent && action !== "RegisterTargets" && !targets.every(isThere)) {
      return invalidTarget(group);
    }
    if (action === "DescribeTargetHealth") return health(group, targets);
    if (action === "DeregisterTargets") return this.#deregister(group, targets);
    return refusalOf(group, targets) ?? register(group, targets, this.mostTargets);
  }

  #deregister(group: ServedGroup, targets: readonly ServedTarget[]): string {
    for (const target of targets) {
      const found = group.targets.find((one) => isSame(one, target));
      // Absent and draining targets need no change.
      if (found === undefined || found.drainedAt !== undefined) continue;
      found.drainedAt = instant(this.#now() + group.drainMs);
    }
    this.#forgetDrained(group);
    return "";
  }

  #forgetDrained({ targets }: ServedGroup): void {
    const left = targets.filter(
      ({ drainedAt }) => drainedAt === undefined || drainedAt > this.#now(),
    );
    targets.splice(0, targets.length, ...left);
  }

  #tags(arns: readonly string[]): string | QueryRefusal {
    if (arns.length > 20) {
      const text = "You can describe tags for up to 20 resources at a time";
      return { status: 400, code: "ValidationError", text };
    }
    const items: string[] = [];
    for (const asked of arns) {
      const group = this.groups.find(({ arn }) => arn === asked);
      if (group === undefined) return noGroup;
      const tags = Object.entries(group.tags).map(([key, value]) =>
        element("member", textElement("Key", key) + textElement("Value", value)),
      );
      items.push(
        element("member", textElement("ResourceArn", asked) + element("Tags", tags.join(""))),
      );
    }
    return element("TagDescriptions", items.join(""));
  }

  #ofClassics(action: string, asked: URLSearchParams): string | QueryRefusal | undefined {
    if (action === "DescribeLoadBalancers") {
      return this.#page("LoadBalancerDescriptions", this.classics.map(classicItem), asked);
    }
    const classic = this.classics.find(({ name }) => name === asked.get("LoadBalancerName"));
    const ids = membersOf(asked, "Instances.member").map(({ InstanceId = "" }) => InstanceId);
    if (!/^(DescribeInstanceHealth|(Dereg|Reg)isterInstances(From|With)LoadBalancer)$/.test(action))
      return undefined;
    if (classic === undefined) return noClassic;
    const gone = ids.find((id) => this.terminated.has(id));
    if (gone !== undefined) return invalidInstance(gone);
    if (action === "DescribeInstanceHealth") return this.#instanceHealth(classic, ids);
    for (const id of ids) {
      if (action.startsWith("Reg")) {
        classic.instances.add(id);
        classic.draining.delete(id);
      } else if (classic.instances.delete(id)) {
        classic.draining.set(id, instant(this.#now() + classic.drainMs));
      }
    }
    return element("Instances", [...classic.instances].map(instanceItem).join(""));
  }

  #instanceHealth(classic: ServedClassic, ids: readonly string[]): string {
    const states = ids.map((id) => {
      const isDraining = (classic.draining.get(id) ?? 0) > this.#now();
      const isIn = classic.instances.has(id) || isDraining;
      const parts =
        element("InstanceId", id) +
        element("State", isIn ? "InService" : "OutOfService") +
        element(
          "Description",
          isDraining
            ? "Instance deregistration currently in progress."
            : isIn
              ? "N/A"
              : "Instance is not currently registered with the LoadBalancer.",
        );
      return element("member", parts);
    });
    return element("InstanceStates", states.join(""));
  }

  #page(list: string, items: readonly string[], asked: URLSearchParams): string {
    const from = Number(asked.get("Marker") ?? 0);
    const most = Math.min(this.pageSize, Number(asked.get("PageSize") ?? this.pageSize));
    const next = from + most < items.length ? String(from + most) : undefined;
    const members = items.slice(from, from + most).map((item) => element("member", item));
    return element(list, members.join("")) + element("NextMarker", next);
  }
}

const listNames: Readonly<Record<string, string>> = {
  DescribeTargetGroups: "TargetGroups",
  DescribeTargetHealth: "TargetHealthDescriptions",
  DescribeTags: "TagDescriptions",
  DescribeLoadBalancers: "LoadBalancerDescriptions",
  DescribeInstanceHealth: "InstanceStates",
};

const noGroup: QueryRefusal = {
  ...{ status: 400, code: "TargetGroupNotFound" },
  text: "One or more target groups not found",
};
const tooManyTargets: QueryRefusal = {
  ...{ status: 400, code: "TooManyTargets" },
  text: "You've reached the limit on the number of targets.",
};
const noClassic: QueryRefusal = {
  ...{ status: 400, code: "LoadBalancerNotFound" },
  text: "There is no ACTIVE Load Balancer named 'x'",
};

function invalidInstance(id: string): QueryRefusal {
  return { status: 400, code: "InvalidInstance", text: `Could not find EC2 instance ${id}.` };
}

function invalidTarget({ type }: ServedGroup): QueryRefusal {
  const text = `The following targets are not of the target type '${type}'`;
  return { status: 400, code: "InvalidTarget", text };
}

function isTarget({ type }: ServedGroup, id: string): boolean {
  return type === "instance" ? id.startsWith("i-") : !id.startsWith("i-");
}

function isSame(one: ServedTarget, other: ServedTarget): boolean {
  return one.id === other.id && one.port === other.port;
}

/**
 * What the service's model documents of TargetDescription. The name and text of the error are a
 * guess.
 */
function refusalOf(
  { type, protocol, isOutsideVpc }: ServedGroup,
  targets: readonly ServedTarget[],
): QueryRefusal | undefined {
  const needsQuic = protocol !== "HTTP";
  const isWrong = targets.some(({ zone, quicServerId }) => {
    if (needsQuic !== (quicServerId !== undefined)) return true;
    return type === "instance" ? zone !== undefined : isOutsideVpc && zone === undefined;
  });
  const text = "A target has too few or too many fields for its target group";
  return isWrong ? { status: 400, code: "ValidationError", text } : undefined;
}

function register(
  group: ServedGroup,
  targets: readonly ServedTarget[],
  mostTargets: number,
): string | QueryRefusal {
  for (const target of targets) {
    const found = group.targets.find((one) => isSame(one, target));
    if (found !== undefined) found.drainedAt = undefined;
    else if (group.targets.length >= mostTargets) return tooManyTargets;
    else group.targets.push({ ...target });
  }
  return "";
}

/**
 * The health of the requested targets, including unregistered ones; without any, of all targets.
 */
function health(group: ServedGroup, asked: readonly ServedTarget[]): string {
  const listed = asked.length === 0 ? group.targets : asked;
  const items = listed.map((one) => {
    const found = group.targets.find((target) => isSame(target, one));
    const target =
      textElement("Id", one.id) +
      element("Port", one.port) +
      element("AvailabilityZone", found?.zone) +
      element("QuicServerId", found?.quicServerId);
    return element("member", element("Target", target) + element("TargetHealth", stateOf(found)));
  });
  return element("TargetHealthDescriptions", items.join(""));
}

function stateOf(found: ServedTarget | undefined): string {
  if (found === undefined) {
    return element("State", "unused") + element("Reason", "Target.NotRegistered");
  }
  if (found.drainedAt === undefined) return element("State", "healthy");
  return element("State", "draining") + element("Reason", "Target.DeregistrationInProgress");
}
