import type { HookLimits } from "../../src/contracts/cloud.ts";
import { hours } from "../../src/core/time/time.ts";
import { overLimit } from "./aws-limits.ts";
import {
  AwsQueryServer,
  element,
  errorResponse,
  listOf,
  type QueryAnswer,
  type QueryRefusal,
  textElement,
} from "./aws-query-server.ts";

interface Held {
  readonly group: string;
  readonly name: string;
  readonly machine: string;
  readonly token?: string | undefined;
}

const namespace = "http://autoscaling.amazonaws.com/doc/2011-01-01/";

const faults = {
  Unreachable: { status: 503, code: "ServiceUnavailable", text: "The service is unavailable." },
  RateLimited: { status: 400, code: "Throttling", text: "Rate exceeded" },
  RightMissing: {
    ...{ status: 403, code: "AccessDenied" },
    text: "User: x is not authorized to perform: autoscaling:CompleteLifecycleAction",
  },
} as const;

/**
 * EC2 Auto Scaling on loopback, as far as lifecycle actions and detaching need it. Its responses
 * have the form of the API's model, version 2011-01-01, in the Query protocol. moto does not
 * support these actions.
 */
export class AutoScalingServer extends AwsQueryServer {
  readonly told: string[] = [];
  /** Called at the moment when a group is told to continue with a machine, or to wait longer. */
  onTold: (machine: string) => void = () => {};
  fault: keyof typeof faults | undefined;
  readonly denied = new Set<string>();
  readonly actions: string[] = [];
  waits: HookLimits = { heartbeatMs: hours(1), longestMs: hours(48) };
  /** Whether a hook is listed with its GlobalTimeout. */
  tellsLongest = true;
  /** The group of each instance that is in a group. */
  readonly members = new Map<string, string>();
  /** Groups that are at their minimum size. */
  readonly atMinimum = new Set<string>();
  readonly #names = new Map<string, string[]>();
  readonly #held: Held[] = [];
  readonly #groups = new Set<string>();

  hold(hook: Held): void {
    this.#groups.add(hook.group);
    this.#names.set(hook.group, [...(this.#names.get(hook.group) ?? []), hook.name]);
    this.#held.push(hook);
  }

  protected override answer(asked: URLSearchParams): QueryAnswer {
    const action = asked.get("Action") ?? "";
    this.actions.push(action);
    const found = this.#refusalOf(action) ?? overLimit(asked) ?? this.#carryOut(action, asked);
    if (typeof found !== "string") return errorResponse(found, namespace);
    const xml =
      `<${action}Response xmlns="${namespace}">${element(`${action}Result`, found)}` +
      `<ResponseMetadata><RequestId>7c6e177f</RequestId></ResponseMetadata></${action}Response>`;
    return { status: 200, xml };
  }

  #refusalOf(action: string): QueryRefusal | undefined {
    if (this.fault !== undefined) return faults[this.fault];
    return this.denied.has(action) ? faults.RightMissing : undefined;
  }

  #carryOut(action: string, asked: URLSearchParams): string | QueryRefusal {
    const group = asked.get("AutoScalingGroupName") ?? "";
    switch (action) {
      case "CompleteLifecycleAction":
      case "RecordLifecycleActionHeartbeat":
        return this.#ofWait(action, asked);
      case "DescribeLifecycleHooks":
        return this.#groups.has(group) ? this.#hookItems(group, asked) : noGroup;
      case "DescribeAutoScalingInstances":
        return this.#members(listOf(asked, "InstanceIds.member"));
      case "DetachInstances":
        return this.#detach(asked);
      default:
        return { status: 400, code: "InvalidAction", text: `Could not find operation ${action}` };
    }
  }

  #ofWait(action: string, asked: URLSearchParams): string | QueryRefusal {
    const group = asked.get("AutoScalingGroupName") ?? "";
    if (!this.#groups.has(group)) return noGroup;
    const [machine, token] = [asked.get("InstanceId"), asked.get("LifecycleActionToken")];
    const place = this.#held.findIndex(
      (one) =>
        one.group === group &&
        one.name === asked.get("LifecycleHookName") &&
        (token === null ? one.machine === machine : one.token === token),
    );
    if (place < 0) {
      const by = token === null ? `instance ID ${machine}` : `token ${token}`;
      return { ...invalid, text: `No active Lifecycle Action found with ${by}` };
    }
    const isEnd = action === "CompleteLifecycleAction";
    const [held] = (isEnd ? this.#held.splice(place, 1) : [this.#held[place]]) as [Held];
    this.told.push(`${isEnd ? asked.get("LifecycleActionResult") : "HEARTBEAT"} ${held.machine}`);
    this.onTold(held.machine);
    return "";
  }

  #hookItems(group: string, asked: URLSearchParams): string {
    const names = listOf(asked, "LifecycleHookNames.member");
    const hooks = [...new Set(this.#names.get(group))].filter((name) => names.includes(name));
    const items = hooks.map((name) =>
      element(
        "member",
        textElement("AutoScalingGroupName", group) +
          textElement("LifecycleHookName", name) +
          element("HeartbeatTimeout", this.waits.heartbeatMs / 1000) +
          element("GlobalTimeout", this.tellsLongest ? this.waits.longestMs / 1000 : undefined) +
          element("DefaultResult", "ABANDON"),
      ),
    );
    return element("LifecycleHooks", items.join(""));
  }

  #members(ids: readonly string[]): string {
    const items = ids.flatMap((id) => {
      const group = this.members.get(id);
      if (group === undefined) return [];
      const parts = textElement("InstanceId", id) + textElement("AutoScalingGroupName", group);
      return [element("member", parts + element("LifecycleState", "InService"))];
    });
    return element("AutoScalingInstances", items.join(""));
  }

  #detach(asked: URLSearchParams): string | QueryRefusal {
    const group = asked.get("AutoScalingGroupName") ?? "";
    const [id = ""] = listOf(asked, "InstanceIds.member");
    if (this.members.get(id) !== group) {
      return { ...invalid, text: `The instance ${id} is not part of Auto Scaling group ${group}.` };
    }
    const isSmaller = asked.get("ShouldDecrementDesiredCapacity") === "true";
    if (isSmaller && this.atMinimum.has(group)) {
      const text = `Currently, desiredSize equals minSize (1). Detaching instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.`;
      return { ...invalid, text };
    }
    this.members.delete(id);
    const how = isSmaller ? "smaller" : "replaced";
    this.told.push(`DETACH ${id} ${how}`);
    return element("Activities", "");
  }
}

const invalid = { status: 400, code: "ValidationError" };
const noGroup: QueryRefusal = { ...invalid, text: "AutoScalingGroup name not found - null" };
