import {
  type AuditedFleet,
  type DisruptionBudget,
  mostReplicasOf,
  replicasOf,
  workloadsOf,
} from "./fleet.ts";
import { isReplicated } from "./rule.ts";

/**
 * How many pods a budget lets go at a time while all are healthy; undefined where the specification
 * does not say it (replicas unknown, nothing selected, pods without a replicated owner).
 * Percentages round up, of what must stay and of what may go alike; a budget with neither expects
 * no pods, and so allows none to go. Where an autoscaler sets the number, at its lower or upper
 * bound.
 * Source: kubernetes pkg/controller/disruption `getExpectedPodCount`.
 */
export function allowedDisruptions(
  fleet: AuditedFleet,
  budget: DisruptionBudget,
  bound: "Least" | "Most" = "Least",
): number | undefined {
  const workloads = workloadsOf(fleet, budget);
  if (workloads.length === 0 || !workloads.every(isReplicated)) return undefined;
  const countOf = bound === "Least" ? replicasOf : mostReplicasOf;
  const counts = workloads.map((workload) => countOf(fleet, workload));
  if (counts.some((count) => count === undefined)) return undefined;
  const expected = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  if (expected === 0) return undefined;
  if (budget.maxUnavailable !== undefined) return amountOf(budget.maxUnavailable, expected);
  if (budget.minAvailable === undefined) return 0;
  const needed = amountOf(budget.minAvailable, expected);
  return needed === undefined ? undefined : Math.max(0, expected - needed);
}

/** A whole number, or a percentage of `expected` rounded up; undefined for anything else. */
function amountOf(written: unknown, expected: number): number | undefined {
  if (typeof written === "number") return Number.isSafeInteger(written) ? written : undefined;
  const percent = typeof written === "string" ? /^(\d+)%$/.exec(written)?.[1] : undefined;
  return percent === undefined ? undefined : Math.ceil((Number(percent) * expected) / 100);
}
