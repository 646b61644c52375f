import type { Clock } from "../../src/contracts/clock.ts";
import { formatInstant, type Instant, seconds } from "../../src/core/time/time.ts";
import { overLimit } from "./aws-limits.ts";
import { AwsQueryServer, type QueryAnswer } from "./aws-query-server.ts";
import { filtersOf, isListed, passes } from "./ec2-server.ts";
import { noInstance } from "./network-server.ts";

export interface FleetInstance {
  readonly id: string;
  /**
   * The first instance of the place that this one has taken over; its own id if it is the first.
   */
  readonly place: string;
  /** Its private address, which EC2 shows until its end. */
  readonly address: string;
  state: "running" | "shutting-down" | "terminated" | "stopping" | "stopped";
  launchedAt: Instant;
  group: FleetGroup | undefined;
  lifecycle: string;
  isProtected: boolean;
  isSpot: boolean;
  /**
   * Its share of the group's capacity, if the group has a mixed instances policy with weights, or
   * counts vCPUs or memory.
   */
  weight: number | undefined;
  /** An AWS service operates it; see `isListed`. */
  isOperated: boolean;
  tags: Readonly<Record<string, string>>;
}

export interface FleetGroup {
  readonly name: string;
  desired: number;
  min: number;
  /** What the sizes count; absent: instances. Then the shares of its instances are not listed. */
  unit?: "vcpu" | "memory-mib" | undefined;
  suspended: string[];
  /** Terminating instances wait in Terminating:Wait, as for a lifecycle hook, until `proceed`. */
  holds: boolean;
  readonly tags: Readonly<Record<string, string>>;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}

const faults = {
  Unreachable: { status: 503, code: "Unavailable", text: "The server is overloaded" },
  RateLimited: { status: 503, code: "RequestLimitExceeded", text: "Request limit exceeded." },
  Unauthenticated: {
    ...{ status: 401, code: "AuthFailure" },
    text: "AWS was not able to validate the provided access credentials",
  },
  RightMissing: {
    ...{ status: 403, code: "UnauthorizedOperation" },
    text: "You are not authorized to perform this operation.",
  },
} as const satisfies Record<string, Refusal>;

const endsAfterMs = seconds(30);
const replacedAfterMs = seconds(10);

/**
 * EC2 and Auto Scaling on loopback, as far as releases need them: instances, groups that replace
 * their losses, dry runs. Responses have the form of the APIs' models (2016-11-15, 2011-01-01).
 * That a second termination of an instance is refused as ScalingActivityInProgress is a guess; it
 * was not checked against Auto Scaling.
 */
export class Ec2Fleet extends AwsQueryServer {
  readonly instances: FleetInstance[] = [];
  readonly actions: string[] = [];
  /** How many requests to terminate an instance were accepted. */
  taken = 0;
  /** The largest number of instances on one page of their list. */
  pageSize = 1000;
  fault: keyof typeof faults | undefined;
  /** DescribeInstances returns empty lists, as for instances that the caller may not see. */
  listsNothing = false;
  /** Actions that are denied because a permission is missing. */
  readonly denied = new Set<string>();
  /** The response to the next request of this action, once. */
  readonly refuseNext = new Map<string, Refusal>();
  readonly #clock: Clock;
  protected override readonly now = () => this.#clock.now();
  readonly #closed = new AbortController();
  readonly #groups: FleetGroup[] = [];
  #count = 0;

  constructor(clock: Clock) {
    super();
    this.#clock = clock;
  }

  addGroup(name: string, tags: FleetGroup["tags"] = {}): FleetGroup {
    const group = { name, desired: 0, min: 0, suspended: [], holds: false, tags };
    this.#groups.push(group);
    return group;
  }

  addInstance(group?: FleetGroup, place?: string): FleetInstance {
    this.#count += 1;
    const id = `i-${this.#count.toString(16).padStart(17, "0")}`;
    const instance: FleetInstance = {
      id,
      place: place ?? id,
      address: `10.0.${this.#count >> 8}.${this.#count & 255}`,
      state: "running",
      launchedAt: this.#clock.now(),
      group,
      lifecycle: "InService",
      isProtected: false,
      isSpot: true,
      weight: undefined,
      isOperated: false,
      tags: {},
    };
    if (group !== undefined && place === undefined) group.desired += 1;
    this.instances.push(instance);
    return instance;
  }

  find(id: string | null): FleetInstance | undefined {
    return this.instances.find((one) => one.id === id);
  }

  /** Terminates the instance, as EC2 does on request or when a lifecycle hook ends. */
  proceed(instance: FleetInstance): void {
    instance.state = "shutting-down";
    void this.#end(instance).catch(() => undefined);
  }

  close(): Promise<void> {
    this.#closed.abort();
    return this.stop();
  }

  async #end(instance: FleetInstance): Promise<void> {
    await this.#clock.sleep(endsAfterMs, this.#closed.signal);
    instance.state = "terminated";
    const { group } = instance;
    instance.group = undefined;
    if (group === undefined) return;
    await this.#clock.sleep(replacedAfterMs, this.#closed.signal);
    const members = this.instances.filter((one) => one.group === group);
    if (members.length < group.desired && !group.suspended.includes("Launch")) {
      this.addInstance(group, instance.place);
    }
  }

  protected override answer(asked: URLSearchParams): QueryAnswer {
    const action = asked.get("Action") ?? "";
    this.actions.push(action);
    const isEc2 = asked.get("Version") === "2016-11-15";
    const refusal = this.#refusalOf(action) ?? overLimit(asked) ?? this.#carryOut(action, asked);
    if (typeof refusal !== "string")
      return isEc2 ? refusedByEc2(refusal) : refusedByGroups(refusal);
    const request = isEc2
      ? "<requestId>7c6e177f</requestId>"
      : "<ResponseMetadata><RequestId>7c6e177f</RequestId></ResponseMetadata>";
    const version = isEc2
      ? "ec2.amazonaws.com/doc/2016-11-15"
      : "autoscaling.amazonaws.com/doc/2011-01-01";
    const body = isEc2 ? refusal : `<${action}Result>${refusal}</${action}Result>`;
    const xml = `<${action}Response xmlns="http://${version}/">${body}${request}</${action}Response>`;
    return { status: 200, xml };
  }

  #refusalOf(action: string): Refusal | undefined {
    if (this.fault !== undefined) return faults[this.fault];
    if (this.denied.has(action)) return faults.RightMissing;
    const once = this.refuseNext.get(action);
    this.refuseNext.delete(action);
    return once;
  }

  #carryOut(action: string, asked: URLSearchParams): string | Refusal {
    switch (action) {
      case "DescribeInstances":
        return this.#describe(asked);
      case "TerminateInstances":
        return this.#terminate(
          this.find(asked.get("InstanceId.1")),
          asked.get("DryRun") === "true",
        );
      case "DescribeAutoScalingInstances": {
        const ids = valuesOf(asked, /^InstanceIds\.member\.\d+$/);
        const found = ids.flatMap((id) => this.find(id) ?? []).flatMap(member);
        return element("AutoScalingInstances", found.join(""));
      }
      case "DescribeAutoScalingGroups": {
        const items = this.#groups
          .filter((one) => isMeant(one, asked))
          .map((group) =>
            groupItem(
              group,
              this.instances.filter((one) => one.group === group),
            ),
          );
        return element("AutoScalingGroups", items.join(""));
      }
      case "TerminateInstanceInAutoScalingGroup":
        return this.#terminateInGroup(
          this.find(asked.get("InstanceId")),
          asked.get("ShouldDecrementDesiredCapacity") === "true",
        );
      default:
        return { status: 400, code: "InvalidAction", text: `No action ${action}` };
    }
  }

  #describe(asked: URLSearchParams): string | Refusal {
    const filters = filtersOf(asked);
    const named = valuesOf(asked, /^InstanceId\.\d+$/);
    const missing = named.find((id) => this.find(id) === undefined);
    if (missing !== undefined) return noInstance(missing);
    const found = this.instances
      .filter(({ id }) => !this.listsNothing && (named.length === 0 || named.includes(id)))
      .filter((one) => passes(filters, factsOf(one)) && isListed(asked, one.isOperated));
    const from = Number(asked.get("NextToken") ?? 0);
    const to = from + this.pageSize;
    const next = to < found.length ? element("nextToken", String(to)) : "";
    return element("reservationSet", found.slice(from, to).map(reservation).join("")) + next;
  }

  #terminate(instance: FleetInstance | undefined, isDry: boolean): string | Refusal {
    if (instance === undefined) return noInstance("");
    if (isDry) {
      const text = "Request would have succeeded, but DryRun flag is set.";
      return { status: 412, code: "DryRunOperation", text };
    }
    if (instance.isProtected) {
      const text =
        "The instance may not be terminated. Modify its 'disableApiTermination' attribute.";
      return { status: 400, code: "OperationNotPermitted", text };
    }
    this.taken += 1;
    if (instance.state === "running") this.proceed(instance);
    return element("instancesSet", "");
  }

  #terminateInGroup(instance: FleetInstance | undefined, decrements: boolean): string | Refusal {
    const group = instance?.group;
    if (instance === undefined || group === undefined) {
      const text = "Instance Id not found - No managed instance found for instance ID";
      return { status: 400, code: "ValidationError", text };
    }
    if (instance.lifecycle !== "InService") {
      const text = "There is a scaling activity in progress";
      return { status: 400, code: "ScalingActivityInProgress", text };
    }
    const weight = instance.weight ?? 1;
    if (decrements && group.desired - weight < group.min) {
      const text = `Currently, desiredSize equals minSize (${group.min}). Terminating instance without replacement will violate group's min size constraint.`;
      return { status: 400, code: "ValidationError", text };
    }
    if (decrements) group.desired -= weight;
    this.taken += 1;
    instance.lifecycle = group.holds ? "Terminating:Wait" : "Terminating";
    if (!group.holds) this.proceed(instance);
    return element("Activity", element("ActivityId", "1"));
  }
}

/** The values of an instance that EC2's filters compare. */
function factsOf({ id, state, tags }: FleetInstance) {
  const values = Object.entries(tags).map(([key, value]) => [`tag:${key}`, value]);
  return {
    ...{ "instance-id": id, "instance-state-name": state, "tag-key": Object.keys(tags) },
    ...(Object.fromEntries(values) as Record<string, string>),
  };
}

function reservation(instance: FleetInstance): string {
  const { id, address, state, launchedAt, isSpot, tags } = instance;
  const codes = { running: 16, "shutting-down": 32, terminated: 48, stopping: 64, stopped: 80 };
  const tagItems = Object.entries(tags).map(
    ([key, value]) => `<item>${element("key", key)}${element("value", value)}</item>`,
  );
  const item =
    element("instanceId", id) +
    element("instanceState", element("code", String(codes[state])) + element("name", state)) +
    element("launchTime", formatInstant(launchedAt)) +
    (state === "terminated" ? "" : element("privateIpAddress", address)) +
    element("privateDnsName", state === "terminated" ? "" : dnsNameOf(address)) +
    element("placement", element("availabilityZone", "eu-west-1a")) +
    (isSpot ? element("instanceLifecycle", "spot") : "") +
    element("tagSet", tagItems.join(""));
  return `<item><reservationId>r-1</reservationId><instancesSet><item>${item}</item></instancesSet></item>`;
}

function dnsNameOf(address: string): string {
  return `ip-${address.replaceAll(".", "-")}.eu-west-1.compute.internal`;
}

function member({ id, group, lifecycle, weight }: FleetInstance): readonly string[] {
  if (group === undefined) return [];
  const parts =
    element("InstanceId", id) +
    element("AutoScalingGroupName", group.name) +
    element("AvailabilityZone", "eu-west-1a") +
    element("LifecycleState", lifecycle) +
    element("HealthStatus", "HEALTHY") +
    (weight === undefined || group.unit !== undefined
      ? ""
      : element("WeightedCapacity", String(weight))) +
    element("ProtectedFromScaleIn", "false");
  return [element("member", parts)];
}

/** Whether the request selects the group: by name, by a tag filter, or, without either, always. */
function isMeant({ name, tags }: FleetGroup, asked: URLSearchParams): boolean {
  const names = valuesOf(asked, /^AutoScalingGroupNames\.member\.\d+$/);
  const filter = asked.get("Filters.member.1.Name");
  const values = valuesOf(asked, /^Filters\.member\.1\.Values\.member\.\d+$/);
  if (names.length > 0) return names.includes(name);
  if (filter === "tag-key") return values.some((key) => key in tags);
  return filter === null || values.includes(tags[filter.replace(/^tag:/, "")] ?? "");
}

function groupItem(
  { name, desired, min, unit, suspended, tags }: FleetGroup,
  members: readonly FleetInstance[],
): string {
  const processes = suspended.map((one) => element("member", element("ProcessName", one)));
  const tagItems = Object.entries(tags).map(([key, value]) =>
    element("member", element("Key", key) + element("Value", value)),
  );
  return element(
    "member",
    element("AutoScalingGroupName", name) +
      element("MinSize", String(min)) +
      element("MaxSize", "100") +
      element("DesiredCapacity", String(desired)) +
      (unit === undefined ? "" : element("DesiredCapacityType", unit)) +
      element("DefaultCooldown", "300") +
      element("HealthCheckType", "EC2") +
      element("CreatedTime", "2026-11-20T00:00:00Z") +
      element("Instances", members.flatMap(member).join("")) +
      element("SuspendedProcesses", processes.join("")) +
      element("Tags", tagItems.join("")),
  );
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

function valuesOf(asked: URLSearchParams, name: RegExp): readonly string[] {
  return [...asked].filter(([key]) => name.test(key)).map(([, value]) => value);
}

function refusedByEc2({ status, code, text }: Refusal): QueryAnswer {
  const error = element("Code", code) + element("Message", text);
  const xml = `<Response><Errors>${element("Error", error)}</Errors><RequestID>7c6e177f</RequestID></Response>`;
  return { status, xml };
}

function refusedByGroups({ status, code, text }: Refusal): QueryAnswer {
  const error = element("Type", "Sender") + element("Code", code) + element("Message", text);
  const xml = `<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/">${element("Error", error)}<RequestId>7c6e177f</RequestId></ErrorResponse>`;
  return { status, xml };
}
