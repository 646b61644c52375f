import type { LabelSelector } from "../../../core/cluster/pod.ts";
import { fieldsOf, isFields } from "../../../core/json/json-field.ts";
import type { ApiContext } from "../resource-registry.ts";
import { type LabelMatcher, labelMatcher } from "../store/list-objects.ts";
import { type ModelObject, namespaceOf } from "../store/object-store.ts";

export const budgetStorage = "poddisruptionbudgets.policy";

const matchers = new WeakMap<object, LabelMatcher>();

/**
 * The budgets whose selector matches the pod; `{}` matches every pod of the namespace, a missing
 * selector none.
 */
export function budgetsOf(context: ApiContext, pod: ModelObject): readonly ModelObject[] {
  const fitting: ModelObject[] = [];
  for (const budget of context.store.collection(budgetStorage).inNamespace(namespaceOf(pod))) {
    if (budgetSelects(budget, pod)) fitting.push(budget);
  }
  return fitting;
}

export function budgetSelects(budget: ModelObject, pod: ModelObject): boolean {
  const selector = fieldsOf(budget.spec).selector;
  if (!isFields(selector)) return false;
  const known = matchers.get(selector);
  if (known) return known(pod.metadata.labels);
  const made = labelMatcher(selector as LabelSelector);
  matchers.set(selector, made);
  return made(pod.metadata.labels);
}

/**
 * The `DisruptionAllowed` condition for a status. Source: component-helpers `poddisruptionbudget`.
 */
export function allowedCondition(allowed: number, generation: number): object {
  return allowed > 0
    ? {
        type: "DisruptionAllowed",
        status: "True",
        reason: "SufficientPods",
        message: "",
        observedGeneration: generation,
      }
    : {
        type: "DisruptionAllowed",
        status: "False",
        reason: "InsufficientPods",
        message: "",
        observedGeneration: generation,
      };
}

interface BudgetStatus {
  readonly observedGeneration?: number;
  readonly disruptionsAllowed?: number;
  readonly currentHealthy?: number;
  readonly desiredHealthy?: number;
  readonly expectedPods?: number;
  /** Pods that were evicted but are not yet seen to terminate, with the time of their eviction. */
  readonly disruptedPods?: Readonly<Record<string, string>>;
  readonly conditions?: readonly object[];
}

/** The status of a budget; one that no controller has synced yet has none. */
export function budgetStatus(budget: ModelObject): BudgetStatus {
  return fieldsOf(budget.status) as BudgetStatus;
}
