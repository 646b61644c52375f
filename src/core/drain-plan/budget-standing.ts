import {
  type BudgetFacts,
  matchesLabelSelector,
  type OwnerFacts,
  type PodFacts,
} from "../cluster/pod.ts";
import { inEnglish } from "../reason/english.ts";

/** Whether PodDisruptionBudgets currently allow the eviction of one pod. */
export type BudgetStanding =
  /** No budget, or one that allows the eviction. */
  | { readonly kind: "Free"; readonly budget?: string | undefined }
  /** Allows no disruption now; it may when more pods are healthy. */
  | BudgetObstacle<"Exhausted">
  /** Can never allow one, however healthy its pods are. */
  | BudgetObstacle<"Impossible">
  /** The eviction API never evicts a pod that two budgets select. */
  | BudgetObstacle<"Multiple">;

interface BudgetObstacle<Kind extends string> {
  readonly kind: Kind;
  /** `namespace/name`; the first by name if there are several. */
  readonly budget: string;
  readonly detail: string;
  /** The budget expects exactly one pod. */
  readonly singleReplica: boolean;
}

/** The budgets that select the pod, by name. They select by labels within their namespace. */
export function budgetsOf(pod: PodFacts, budgets: readonly BudgetFacts[]): readonly BudgetFacts[] {
  return budgets
    .filter((budget) => isSelected(pod, budget))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * What the eviction API would respond, computed without a request: a dry run checks each pod
 * separately and costs a request, and for manifests there is no API server. Source:
 * pkg/registry/core/pod/storage/eviction.go (1.36): Pending, finished and terminating pods pass
 * every budget; more than one budget is an error; an unready pod passes with AlwaysAllow, or if the
 * budget has as many healthy pods as it requires.
 */
export function budgetStanding(
  pod: PodFacts,
  world: {
    readonly budgets: readonly BudgetFacts[];
    /** Every pod of the cluster, if known: for budgets without a fresh status. */
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
  if (allowsEviction(pod, budget)) return { kind: "Free", budget: name };
  const failure = syncFailureOf(budget, { pod, everyPod: world.everyPod });
  if (failure !== undefined) {
    // How many pods it would expect is unknown.
    const detail = `${name} ${failure}`;
    return { kind: "Impossible", budget: name, detail, singleReplica: false };
  }
  if (isImpossible(budget, expected)) {
    const detail = `${name} ${demandOf(budget, expected)}`;
    return { kind: "Impossible", budget: name, detail, singleReplica };
  }
  if (!budget.observed) return { kind: "Free", budget: name };
  const detail = inEnglish({
    says: "detail.BudgetExhausted",
    budget: name,
    wanted: budget.desiredHealthy,
    ready: budget.currentHealthy,
  });
  return { kind: "Exhausted", budget: name, detail, singleReplica };
}

/**
 * Why no pod of the budget can ever be evicted, with its settings and the pods that it selects;
 * undefined if one can, or if it selects none.
 */
export function whyNeverAllowed(budget: BudgetFacts): string | undefined {
  const failure = syncFailureOf(budget, {});
  if (failure !== undefined) return failure;
  const { expectedPods: expected, currentHealthy } = budget;
  const selectsSome = expected > 0 || currentHealthy > 0;
  return selectsSome && isImpossible(budget, expected) ? demandOf(budget, expected) : undefined;
}

/**
 * Owners of pods, as `group/Kind`, that have no `scale` subresource, of those that Kubernetes
 * itself defines. Source: the REST storage of kubernetes pkg/registry/{apps,batch,core}, 1.36.
 */
const withoutReplicas: ReadonlySet<string> = new Set([
  ...["batch/Job", "apps/DaemonSet"],
  // Of a static pod, and of a pod of Spark's driver.
  ...["/Node", "/Pod"],
]);

/**
 * Why the disruption controller cannot tell how many pods of the budget may be unavailable, so that
 * it allows none: it said so, or it will, as the pods show. Only an integer minAvailable needs no
 * number of replicas. Source: disruption.go, getExpectedPodCount and getExpectedScale, which look
 * at finished pods as well.
 */
function syncFailureOf(
  budget: BudgetFacts,
  known: { readonly pod?: PodFacts; readonly everyPod?: readonly PodFacts[] | undefined },
): string | undefined {
  if (budget.syncFailure !== undefined) {
    return `allows none while the disruption controller cannot compute it: ${budget.syncFailure}`;
  }
  if (!needsReplicas(budget)) return undefined;
  if (budget.observed) return expectsNone(budget, known.pod) ? withoutController : undefined;
  const selected = known.everyPod?.filter((pod) => isSelected(pod, budget)) ?? [];
  const owners = selected.flatMap(({ controller }) => controller ?? []);
  if (selected.length > 0 && owners.length === 0) return withoutController;
  const owner = owners.find(hasNoReplicas);
  return owner && `allows none, because it selects a pod of ${owner.kind} ${owner.name}`;
}

const withoutController = "expects no pods, because those that it selects have no controller";

/** An integer minAvailable is compared with the pods alone. */
function needsReplicas({ minAvailable, maxUnavailable }: BudgetFacts): boolean {
  return maxUnavailable !== undefined || typeof minAvailable === "string";
}

/** Whether the budget has been computed and counts none of the pods that it selects. */
function expectsNone(budget: BudgetFacts, pod: PodFacts | undefined): boolean {
  if (budget.expectedPods > 0) return false;
  return pod === undefined ? budget.currentHealthy > 0 : pod.controller === undefined;
}

function hasNoReplicas({ group, kind }: OwnerFacts): boolean {
  return withoutReplicas.has(`${group}/${kind}`);
}

/** Pods in the phase Unknown do not pass. */
function passesEveryBudget(pod: PodFacts): boolean {
  if (pod.deletionAt !== undefined) return true;
  return pod.phase === "Pending" || pod.phase === "Succeeded" || pod.phase === "Failed";
}

export function budgetName(budget: BudgetFacts): string {
  return `${budget.namespace}/${budget.name}`;
}

function allowsEviction(pod: PodFacts, budget: BudgetFacts): boolean {
  if (!pod.ready && budget.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  if (!budget.observed) return false;
  if (budget.disruptionsAllowed > 0) return true;
  return !pod.ready && budget.desiredHealthy > 0 && budget.currentHealthy >= budget.desiredHealthy;
}

/**
 * The number of pods that the budget expects: from its status if that is fresh, otherwise from the
 * pods of the cluster if all of them are known.
 */
function expectedPods(
  budget: BudgetFacts,
  everyPod: readonly PodFacts[] | undefined,
): number | undefined {
  if (budget.observed && budget.expectedPods > 0) return budget.expectedPods;
  return everyPod?.filter(
    (pod) => pod.phase !== "Succeeded" && pod.phase !== "Failed" && isSelected(pod, budget),
  ).length;
}

function isSelected(pod: PodFacts, { namespace, selector }: BudgetFacts): boolean {
  return pod.namespace === namespace && matchesLabelSelector(selector, pod.labels);
}

/**
 * Both percentages are rounded up (disruption.go, GetScaledValueFromIntOrPercent with roundUp). If
 * the number of pods is unknown, only a budget that no number could satisfy is called impossible.
 */
function isImpossible(budget: BudgetFacts, expected: number | undefined): boolean {
  if (budget.maxUnavailable !== undefined) {
    return scaled(budget.maxUnavailable, expected ?? 1) <= 0;
  }
  // It expects no pods, whatever it selects.
  if (budget.minAvailable === undefined) return true;
  if (expected === undefined) return budget.minAvailable === "100%";
  return scaled(budget.minAvailable, expected) >= expected;
}

function scaled(value: number | string, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value);
  return percent === null ? Number(value) : Math.ceil((Number(percent[1]) * total) / 100);
}

function demandOf(budget: BudgetFacts, expected: number | undefined): string {
  const { minAvailable, maxUnavailable } = budget;
  const of = expected === undefined ? "" : ` of ${expected}`;
  if (maxUnavailable !== undefined) return `allows maxUnavailable ${maxUnavailable}${of}`;
  if (minAvailable !== undefined) return `requires minAvailable ${minAvailable}${of}`;
  return "has neither minAvailable nor maxUnavailable";
}
