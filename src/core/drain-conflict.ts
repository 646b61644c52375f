import type { BudgetDemand, DrainPlan } from "./drain-plan.ts";

/** Two drains that can end up waiting for each other, and the budgets over which. */
export interface DrainConflict {
  readonly budgets: readonly [string, string];
}

/**
 * Whether two drains that run at once can each wait on what the other holds. It takes two budgets
 * that both drains need and that cannot let the pods of both go at once: the first drain spends
 * one, the second the other, and if the replacements need either node to come back, neither goes
 * on (openshift/machine-api-operator#1066). Over one budget alone the drains only take turns.
 * A budget that allows nothing is held by neither and is found before, in the plan.
 */
export function departuresInConflict(a: DrainPlan, b: DrainPlan): DrainConflict | undefined {
  const [first, second] = a.demands
    .filter((demand) => isContended(demand, b.demands))
    .map((demand) => demand.budget);
  return first === undefined || second === undefined ? undefined : { budgets: [first, second] };
}

function isContended(demand: BudgetDemand, others: readonly BudgetDemand[]): boolean {
  const other = others.find((candidate) => candidate.budget === demand.budget);
  if (other === undefined || demand.disruptionsAllowed < 1) return false;
  return demand.pods + other.pods > demand.disruptionsAllowed;
}
