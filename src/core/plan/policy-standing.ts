import type { ReleaseReason } from "../policy/release-answer.ts";
import { counted } from "../reason/counted.ts";
import type { Saying, Sentence } from "../reason/english.ts";
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
  readonly explain: Saying;
}

function noNodes({ outranked }: PolicyPlan): Sentence {
  if (outranked === 0) return { says: "fleet.SelectsNone" };
  return { says: "fleet.Outranked", nodes: outranked };
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
    const isEmpty = matched === 0;
    const explain: Sentence = isEmpty
      ? { says: "fleet.PausedEmpty" }
      : { says: "fleet.Paused", nodes: matched };
    return { reason: "Paused", explain };
  }
  if (matched === 0) return { reason: "NoNodes", explain: noNodes(plan) };
  const explain = explainForecast(plan);
  const [first] = blocked;
  if (first !== undefined) {
    const { detail = "" } = first;
    const stay: Sentence = {
      says: "fleet.OwnersUnread",
      nodes: blocked.length,
      detail,
      rest: explain,
    };
    return { reason: "PolicyInvalid", explain: stay };
  }
  if (health.hold !== undefined) {
    // None of them is on schedule then, even if all can still leave in time.
    const rest = forecast.feasible ? undefined : explain;
    const hold: Sentence = { says: "fleet.Unhealthy", detail: health.hold.detail ?? "", rest };
    return { reason: "FleetUnhealthy", explain: hold };
  }
  if (release !== undefined) return { reason: release.reason, explain };
  if (!forecast.feasible) return { reason: "Late", explain };
  return { reason: areWavesHalted(plan) ? "WaveHalted" : "InTime", explain };
}

export function nodeCount(count: number): string {
  return counted(count, "node");
}
