import { matchesLabelSelector } from "../cluster/label-selector.ts";
import type { BudgetFacts, PodFacts } from "../cluster/pod.ts";

/** How the PodDisruptionBudgets stand to the eviction of one pod, as things are now. */
export type BudgetStanding =
  /** No budget, or one that lets the pod go. */
  | { readonly kind: "Free"; readonly budget?: string | undefined }
  /** Allows no disruption now; it may when more pods are healthy. */
  | BudgetObstacle<"Exhausted">
  /** Can never allow one, however healthy its pods are. */
  | BudgetObstacle<"Impossible">
  /** The eviction API evicts no pod that two budgets select. */
  | BudgetObstacle<"Multiple">;

interface BudgetObstacle<Kind extends string> {
  readonly kind: Kind;
  /** `namespace/name`; the first by name where there are several. */
  readonly budget: string;
  readonly detail: string;
  /** The budget expects one pod and no more. */
  readonly singleReplica: boolean;
}

/** Budgets that select the pod, by name. They match by labels alone, within the namespace. */
export function budgetsOf(pod: PodFacts, budgets: readonly BudgetFacts[]): readonly BudgetFacts[] {
  return budgets
    .filter((b) => b.namespace === pod.namespace && matchesLabelSelector(b.selector, pod.labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * What the eviction API would say, without asking it: the dry run of the API checks each pod by
 * itself and costs a request, and from a file there is nobody to ask.
 * Source: pkg/registry/core/pod/storage/eviction.go (1.36): Pending, finished and terminating pods
 * pass every budget; more than one budget is an error; an unready pod passes with AlwaysAllow, or
 * when the budget has as many healthy pods as it desires.
 */
export function budgetStanding(
  pod: PodFacts,
  world: {
    readonly budgets: readonly BudgetFacts[];
    /** Every pod of the cluster, where they are known: for budgets without a fresh status. */
    readonly everyPod?: readonly PodFacts[] | undefined;
  },
): BudgetStanding {
  const [budget, ...others] = budgetsOf(pod, world.budgets);
  if (budget === undefined) return { kind: "Free" };
  const name = budgetName(budget);
  if (passesEveryBudget(pod)) return { kind: "Free", budget: name };
  const expected = expectedPods(budget, world.everyPod);
  const singleReplica = expected === 1;
  if (others.length > 0) {
    const names = [budget, ...others].map(budgetName).join(", ");
    return { kind: "Multiple", budget: name, detail: names, singleReplica };
  }
  if (letsGo(pod, budget)) return { kind: "Free", budget: name };
  if (isImpossible(budget, expected)) {
    const detail = `${name} ${demandOf(budget)}${expected === undefined ? "" : ` of ${expected}`}`;
    return { kind: "Impossible", budget: name, detail, singleReplica };
  }
  if (!budget.observed) return { kind: "Free", budget: name };
  const detail = `${name} needs ${budget.desiredHealthy} healthy and has ${budget.currentHealthy}`;
  return { kind: "Exhausted", budget: name, detail, singleReplica };
}

/**
 * Whether no pod of the budget can ever be evicted, as it is set and as many pods as it expects.
 */
export function canNeverAllow(budget: BudgetFacts): boolean {
  return budget.expectedPods > 0 && isImpossible(budget, expectedPods(budget, undefined));
}

/** Of the phases Unknown is not among those that pass. */
function passesEveryBudget(pod: PodFacts): boolean {
  if (pod.deletionAt !== undefined) return true;
  return pod.phase === "Pending" || pod.phase === "Succeeded" || pod.phase === "Failed";
}

export function budgetName(budget: BudgetFacts): string {
  return `${budget.namespace}/${budget.name}`;
}

function letsGo(pod: PodFacts, budget: BudgetFacts): boolean {
  if (!pod.ready && budget.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  if (!budget.observed) return false;
  if (budget.disruptionsAllowed > 0) return true;
  return !pod.ready && budget.desiredHealthy > 0 && budget.currentHealthy >= budget.desiredHealthy;
}

/** The status counts where it is fresh; else the pods of the cluster, where they are all known. */
function expectedPods(
  budget: BudgetFacts,
  everyPod: readonly PodFacts[] | undefined,
): number | undefined {
  if (budget.observed && budget.expectedPods > 0) return budget.expectedPods;
  return everyPod?.filter(
    (pod) =>
      pod.namespace === budget.namespace &&
      pod.phase !== "Succeeded" &&
      pod.phase !== "Failed" &&
      matchesLabelSelector(budget.selector, pod.labels),
  ).length;
}

/**
 * Both percentages round up (disruption.go, GetScaledValueFromIntOrPercent with roundUp). Where
 * nobody knows how many pods there are, only what no number could allow is called impossible.
 */
function isImpossible(budget: BudgetFacts, expected: number | undefined): boolean {
  if (budget.maxUnavailable !== undefined) {
    return scaled(budget.maxUnavailable, expected ?? 1) <= 0;
  }
  if (budget.minAvailable === undefined) return false;
  if (expected === undefined) return budget.minAvailable === "100%";
  return scaled(budget.minAvailable, expected) >= expected;
}

function scaled(value: number | string, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value);
  return percent === null ? Number(value) : Math.ceil((Number(percent[1]) * total) / 100);
}

function demandOf(budget: BudgetFacts): string {
  return budget.maxUnavailable === undefined
    ? `demands minAvailable ${budget.minAvailable}`
    : `allows maxUnavailable ${budget.maxUnavailable}`;
}
