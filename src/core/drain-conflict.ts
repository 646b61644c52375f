/** How much of a budget one drain asks for, and how much there was when it was asked. */
export interface BudgetDemand {
  /** `namespace/name` */
  readonly budget: string;
  readonly pods: number;
  readonly disruptionsAllowed: number;
}

/** A drain, as far as others can get into its way. */
export interface Demanding {
  readonly demands: readonly BudgetDemand[];
}

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
export function departuresInConflict(a: Demanding, b: Demanding): DrainConflict | undefined {
  const [first, second] = a.demands
    .filter((demand) => isContended(demand, b.demands))
    .map((demand) => demand.budget);
  return first === undefined || second === undefined ? undefined : { budgets: [first, second] };
}

/**
 * Of what a drain asks for that over which it could get into a conflict once it has begun; none
 * where it is too little for any.
 */
export function contestable(demands: readonly BudgetDemand[]): readonly BudgetDemand[] {
  const open = demands.filter(({ disruptionsAllowed }) => disruptionsAllowed > 0);
  return open.length < 2 ? [] : open;
}

function isContended(demand: BudgetDemand, others: readonly BudgetDemand[]): boolean {
  const other = others.find((candidate) => candidate.budget === demand.budget);
  if (other === undefined || demand.disruptionsAllowed < 1) return false;
  return demand.pods + other.pods > demand.disruptionsAllowed;
}
