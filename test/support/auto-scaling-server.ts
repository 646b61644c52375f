import { AwsQueryServer, type QueryAnswer } from "./aws-query-server.ts";

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
 * EC2 Auto Scaling on loopback, as far as lifecycle actions go; its answers have the form of the
 * API's model, version 2011-01-01, in the Query protocol. moto has no such action.
 */
export class AutoScalingServer extends AwsQueryServer {
  readonly told: string[] = [];
  /** Told of each machine with which a group goes on, in that moment. */
  onTold: (machine: string) => void = () => {};
  fault: keyof typeof faults | undefined;
  readonly #held: Held[] = [];
  readonly #groups = new Set<string>();

  hold(hook: Held): void {
    this.#groups.add(hook.group);
    this.#held.push(hook);
  }

  protected override answer(asked: URLSearchParams): QueryAnswer {
    if (this.fault !== undefined) return refusal(faults[this.fault]);
    if (asked.get("Action") === "CompleteLifecycleAction") return this.#complete(asked);
    const text = `Could not find operation ${asked.get("Action")}`;
    return refusal({ status: 400, code: "InvalidAction", text });
  }

  #complete(asked: URLSearchParams): QueryAnswer {
    const invalid = { status: 400, code: "ValidationError" };
    const group = asked.get("AutoScalingGroupName") ?? "";
    if (!this.#groups.has(group)) {
      return refusal({ ...invalid, text: "AutoScalingGroup name not found - null" });
    }
    const [machine, token] = [asked.get("InstanceId"), asked.get("LifecycleActionToken")];
    const place = this.#held.findIndex(
      (one) =>
        one.group === group &&
        one.name === asked.get("LifecycleHookName") &&
        (token === null ? one.machine === machine : one.token === token),
    );
    if (place < 0) {
      const by = token === null ? `instance ID ${machine}` : `token ${token}`;
      return refusal({ ...invalid, text: `No active Lifecycle Action found with ${by}` });
    }
    const [held] = this.#held.splice(place, 1) as [Held];
    this.told.push(`${asked.get("LifecycleActionResult")} ${held.machine}`);
    this.onTold(held.machine);
    return {
      status: 200,
      xml:
        `<CompleteLifecycleActionResponse xmlns="${namespace}"><CompleteLifecycleActionResult/>` +
        "<ResponseMetadata><RequestId>7c6e177f</RequestId></ResponseMetadata></CompleteLifecycleActionResponse>",
    };
  }
}

function refusal(fault: {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}): QueryAnswer {
  const { status, code, text } = fault;
  return {
    status,
    xml:
      `<ErrorResponse xmlns="${namespace}"><Error><Type>Sender</Type><Code>${code}</Code>` +
      `<Message>${text}</Message></Error><RequestId>7c6e177f</RequestId></ErrorResponse>`,
  };
}
