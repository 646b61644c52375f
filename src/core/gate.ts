import { holdOf } from "./hold.ts";
import type { NodeFacts } from "./node.ts";
import type { Policy } from "./policy.ts";
import type { Reason } from "./reason.ts";
import { rivalOf } from "./rival.ts";
import type { GateAnswer } from "./snapshot.ts";
import { hours, type Instant, instant, plus } from "./time.ts";
import { openHours } from "./windows.ts";

export type GateVerdict =
  | { readonly kind: "Allowed" }
  | {
      readonly kind: "Held";
      readonly reason: Reason;
      /** Who or what holds it, for the sentence. */
      readonly detail?: string | undefined;
      /** When it is worth asking again; absent where only a change in the cluster can tell. */
      readonly retryAt?: Instant | undefined;
    };

export interface GateQuestion {
  readonly policy: Policy;
  readonly node: NodeFacts;
  /** Answers from outside; absent: not asked yet, which counts as closed. */
  readonly answer: GateAnswer | undefined;
  readonly now: Instant;
}

const allowed: GateVerdict = { kind: "Allowed" };

/**
 * Whether the gates and windows let a planned departure start now. All fail closed: what could not
 * be asked counts as shut. Whether a deadline goes past them is not decided here.
 */
export function gateVerdict(question: GateQuestion): GateVerdict {
  const checks = [nodeGate, policyGate, windowVerdict, alertGate, podGate];
  for (const check of checks) {
    const verdict = check(question);
    if (verdict.kind === "Held") return verdict;
  }
  return allowed;
}

/** How far ahead a closed window looks for its next opening; then it is asked again. */
const lookAheadMs = hours(8 * 24);

/** Whether the windows are open now; if not, when they open next. */
export function windowVerdict({ policy, now }: Pick<GateQuestion, "policy" | "now">): GateVerdict {
  const soon = openHours(policy.windows, { startAt: now, endAt: instant(now + 1) });
  if (soon.spans.length > 0) return allowed;
  const later = openHours(policy.windows, { startAt: now, endAt: plus(now, lookAheadMs) });
  const retryAt = later.spans[0]?.startAt ?? plus(now, lookAheadMs);
  return { kind: "Held", reason: "OutsideWindow", retryAt };
}

function nodeGate({ node, now }: GateQuestion): GateVerdict {
  if (node.deletionAt !== undefined) return { kind: "Held", reason: "NodeTerminating" };
  const rival = rivalOf(node);
  if (rival !== undefined) return { kind: "Held", reason: "LeftToOthers", detail: rival };
  const hold = holdOf(node);
  if (hold.kind === "Always") return { kind: "Held", reason: "OnHold", detail: hold.mark };
  if (hold.kind === "Until" && hold.until > now) {
    return { kind: "Held", reason: "OnHold", retryAt: hold.until };
  }
  return allowed;
}

function policyGate({ policy, now }: GateQuestion): GateVerdict {
  if (policy.paused) return { kind: "Held", reason: "PolicyPaused" };
  const { freezeUntil } = policy.gates;
  if (freezeUntil !== undefined && now < freezeUntil) {
    return { kind: "Held", reason: "Frozen", retryAt: freezeUntil };
  }
  return allowed;
}

function alertGate({ policy, answer }: GateQuestion): GateVerdict {
  if (policy.gates.alerts === undefined) return allowed;
  const alerts = answer?.alerts ?? "Unknown";
  if (alerts === "Unknown") {
    return { kind: "Held", reason: "AlertsUnknown", detail: policy.gates.alerts.url };
  }
  if (alerts.length === 0) return allowed;
  return { kind: "Held", reason: "AlertsFiring", detail: alerts.join(", ") };
}

function podGate({ policy, node, answer }: GateQuestion): GateVerdict {
  if (policy.gates.blockingPods.length === 0) return allowed;
  const pods = answer?.blockingPods ?? "Unknown";
  if (pods === "Unknown") return { kind: "Held", reason: "BlockingPodsUnknown" };
  const pod = pods.get(node.name);
  return pod === undefined ? allowed : { kind: "Held", reason: "BlockingPod", detail: pod };
}
