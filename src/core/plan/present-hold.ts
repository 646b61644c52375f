import { because } from "../departure/decision.ts";
import { type Departure, isLive, isUnderWay, policyNameOf } from "../departure/departure.ts";
import { waveVerdict } from "../limits/budget.ts";
import type { GateHold } from "../limits/gate.ts";
import type { Reason } from "../reason/reason.ts";
import type { FleetPlan, PlannedDeparture, PolicyPlan } from "./fleet-plan.ts";

type FleetStanding = Pick<PolicyPlan, "health" | "waves">;

/**
 * The departures as they stand at the time of the plan, so that what is said of one of them agrees
 * with what is said of its policy. The record of a hold may be older: one that concerns the whole
 * fleet is written at most every ten minutes, and one by a budget is the departure's place in the
 * queue until its turn comes, although the budget may have room again meanwhile.
 */
export function asTheyStand(
  departures: readonly Departure[],
  plan: FleetPlan,
): readonly Departure[] {
  if (!departures.some(isHeld)) return departures;
  const policies = new Map(plan.policies.map((one) => [one.policy.name, one]));
  const planned = new Map(
    plan.policies.flatMap((one) => one.departures.map((entry) => [entry.node.uid, entry] as const)),
  );
  return departures.map((one) => {
    if (!isHeld(one)) return one;
    const entry = planned.get(one.node.uid);
    const policy = policies.get(policyNameOf(one) ?? "");
    const hold = policy && fleetHold(one.status.reason, policy);
    if (hold === "Over") return waiting(one, entry, plan);
    if (hold !== undefined) return heldBy(hold, one);
    // One that is planned again keeps its record until the controller has moved it.
    const isQueued = entry !== undefined && entry.departAt <= plan.at && entry.beginAt > plan.at;
    return isInQueue(one) && isQueued ? waiting(one, entry, plan) : one;
  });
}

/** Whether what held it was a fact of the whole fleet that is no longer true. */
export function isFleetHoldOver(reason: Reason | undefined, standing: FleetStanding): boolean {
  return fleetHold(reason, standing) === "Over";
}

/** What the hold of a departure is now; undefined for one that is no fact of the whole fleet. */
function fleetHold(
  reason: Reason | undefined,
  { health, waves }: FleetStanding,
): GateHold | "Over" | undefined {
  switch (reason) {
    case "FleetUnhealthy":
      return health.hold ?? "Over";
    case "WaveWait":
    case "WaveHalted": {
      const verdict = waveVerdict(waves);
      return verdict.kind === "Held" ? verdict : "Over";
    }
    default:
      return undefined;
  }
}

function isHeld(departure: Departure): boolean {
  return departure.status.phase === "Held" && isLive(departure) && !isUnderWay(departure);
}

function isInQueue({ cause, status }: Departure): boolean {
  return cause === "Planned" && status.reason === "BudgetSpent";
}

function heldBy({ reason, detail }: GateHold, departure: Departure): Departure {
  const { explain: message } = because(reason, departure, { detail });
  return { ...departure, status: { ...departure.status, reason, message } };
}

/** It starts when its turn comes, or as soon as somebody looks at it. */
function waiting(
  departure: Departure,
  entry: PlannedDeparture | undefined,
  { at }: FleetPlan,
): Departure {
  const startsAt = entry?.heldBackTo ?? entry?.beginAt;
  const until = startsAt !== undefined && startsAt > at ? startsAt : undefined;
  const { reason, explain: message } = because("NotYet", departure, { until });
  return { ...departure, status: { ...departure.status, phase: "Scheduled", reason, message } };
}
