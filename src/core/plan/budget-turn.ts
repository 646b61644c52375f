import type { Departure } from "../departure/departure.ts";
import { explain } from "../reason/reason.ts";
import type { FleetPlan, PlannedDeparture } from "./fleet-plan.ts";

/**
 * The departures as they stand now. The record of one that a budget held keeps that reason, because
 * it is its place in the queue, until its turn comes; meanwhile the budget may have room again, and
 * it waits a gap after the newest start like any other.
 */
export function atTheirTurn(
  departures: readonly Departure[],
  plan: FleetPlan,
): readonly Departure[] {
  if (!departures.some(isInQueue)) return departures;
  const planned = new Map(
    plan.policies.flatMap((one) => one.departures.map((entry) => [entry.node.uid, entry] as const)),
  );
  return departures.map((one) => {
    const entry = planned.get(one.node.uid);
    // One that is planned again keeps its record until the controller has moved it.
    const isWaiting = entry !== undefined && entry.departAt <= plan.at && entry.beginAt > plan.at;
    return isInQueue(one) && isWaiting ? waitingForTurn(one, entry) : one;
  });
}

function isInQueue({ cause, status }: Departure): boolean {
  return cause === "Planned" && status.phase === "Held" && status.reason === "BudgetSpent";
}

function waitingForTurn(departure: Departure, entry: PlannedDeparture): Departure {
  const reason = "NotYet";
  const until = entry.heldBackTo ?? entry.beginAt;
  const message = explain(reason, { node: departure.node.name, until });
  return { ...departure, status: { ...departure.status, phase: "Scheduled", reason, message } };
}
