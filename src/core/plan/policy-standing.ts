import type { ReleaseReason } from "../policy/release-answer.ts";
import { counted, isOrAre } from "../reason/counted.ts";
import { areWavesHalted, explainForecast } from "./explain-forecast.ts";
import type { FleetPlan, PolicyPlan } from "./fleet-plan.ts";
import type { NotPlanned } from "./not-planned.ts";

/**
 * Whether a policy's nodes leave in time, and why not: the reason of its condition `Feasible`, and
 * what every view says of the policy. `Paused` and `NoNodes`: unknown, because nothing leaves. A
 * pool may have no nodes for a while, but a selector with a mistake looks the same.
 */
export type PolicyStandingReason =
  | "Paused"
  | "NoNodes"
  | "PolicyInvalid"
  | ReleaseReason
  | "FleetUnhealthy"
  | "Late"
  /** In time, but only because deadlines override the waves: a person has to continue them. */
  | "WaveHalted"
  | "InTime";

export interface PolicyStanding {
  readonly reason: PolicyStandingReason;
  readonly explain: string;
}

function noNodes({ outranked }: PolicyPlan): string {
  if (outranked === 0) {
    return "It selects no node: compare its nodeSelector with the labels of the nodes";
  }
  return `It applies to no node: policies of more weight or of an earlier name apply to the ${nodeCount(outranked)} that it selects`;
}

const feasible: ReadonlySet<PolicyStandingReason> = new Set(["InTime", "WaveHalted"]);

/** Whether it keeps nodes from leaving in time. Where nothing leaves, nothing is late. */
export function isInfeasible(reason: PolicyStandingReason): boolean {
  return !feasible.has(reason) && reason !== "Paused" && reason !== "NoNodes";
}

/** The nodes of a policy that an unreadable policy might own. */
export function blockedNodes({ notPlanned }: FleetPlan, policy: string): readonly NotPlanned[] {
  return notPlanned.filter((one) => one.blockedBy !== undefined && one.policy === policy);
}

/** `blocked` are nodes of the policy that an unreadable policy might own. */
export function policyStanding(plan: PolicyPlan, blocked: readonly NotPlanned[]): PolicyStanding {
  const { policy, matched, forecast, release, health } = plan;
  if (policy.paused) {
    const explain =
      matched === 0
        ? "The policy is paused, and selects no node"
        : `The policy is paused: ${nodeCount(matched)} without a departure time`;
    return { reason: "Paused", explain };
  }
  if (matched === 0) return { reason: "NoNodes", explain: noNodes(plan) };
  const explain = explainForecast(plan);
  const [first] = blocked;
  if (first !== undefined) {
    const held = `${nodeCount(blocked.length)} ${isOrAre(blocked.length)} held back`;
    const them = blocked.length === 1 ? "it" : "them";
    const why = `${held}, because a policy that might own ${them} cannot be read`;
    return { reason: "PolicyInvalid", explain: `${why}: ${first.detail}. ${explain}` };
  }
  if (health.hold !== undefined) {
    const why = `No voluntary departure starts, because the fleet is unhealthy: ${health.hold.detail}`;
    // None of them is on schedule then, even if all can still leave in time.
    const late = forecast.feasible ? "" : `. ${explain}`;
    return { reason: "FleetUnhealthy", explain: `${why}${late}` };
  }
  if (release !== undefined) return { reason: release.reason, explain };
  if (!forecast.feasible) return { reason: "Late", explain };
  return { reason: areWavesHalted(plan) ? "WaveHalted" : "InTime", explain };
}

export function nodeCount(count: number): string {
  return counted(count, "node");
}
