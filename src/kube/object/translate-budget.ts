import type { KubeObject } from "../../contracts/kube-api.ts";
import type { LabelRequirement, LabelSelector } from "../../core/cluster/placement.ts";
import type { BudgetFacts } from "../../core/cluster/pod.ts";
import {
  fieldsOf,
  listOf,
  numberOf,
  oneOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";

const selectorOperators = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

/** `In` nothing is true of no label. */
const impossible: LabelRequirement = { key: "", operator: "In", values: [] };

/** The facts of a PodDisruptionBudget of policy/v1. Total: without a status nothing is allowed. */
export function translateBudget(budget: KubeObject): BudgetFacts {
  const meta = fieldsOf(budget.metadata);
  const spec = fieldsOf(budget.spec);
  const status = fieldsOf(budget.status);
  const generation = numberOf(meta.generation) ?? 0;
  return {
    namespace: textOf(meta.namespace) ?? "default",
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    selector: toSelector(spec.selector),
    minAvailable: textOf(spec.minAvailable) ?? numberOf(spec.minAvailable),
    maxUnavailable: textOf(spec.maxUnavailable) ?? numberOf(spec.maxUnavailable),
    unhealthyPodEvictionPolicy:
      spec.unhealthyPodEvictionPolicy === "AlwaysAllow" ? "AlwaysAllow" : "IfHealthyBudget",
    disruptionsAllowed: numberOf(status.disruptionsAllowed) ?? 0,
    currentHealthy: numberOf(status.currentHealthy) ?? 0,
    desiredHealthy: numberOf(status.desiredHealthy) ?? 0,
    expectedPods: numberOf(status.expectedPods) ?? 0,
    observed: (numberOf(status.observedGeneration) ?? -1) >= generation,
  };
}

/** In policy/v1 an empty selector selects every pod of the namespace, a missing one none. */
function toSelector(value: unknown): LabelSelector {
  if (value === undefined || value === null) return { matchExpressions: [impossible] };
  const { matchLabels, matchExpressions } = fieldsOf(value);
  return {
    matchLabels: matchLabels === undefined ? undefined : textMapOf(matchLabels),
    matchExpressions:
      matchExpressions === undefined ? undefined : listOf(matchExpressions).map(toRequirement),
  };
}

/** What cannot be understood selects nothing; the API server still judges each eviction itself. */
function toRequirement(value: unknown): LabelRequirement {
  const requirement = fieldsOf(value);
  const key = textOf(requirement.key);
  const operator = oneOf(selectorOperators, requirement.operator);
  if (key === undefined || operator === undefined) return impossible;
  return {
    key,
    operator,
    values: listOf(requirement.values).flatMap((item) => textOf(item) ?? []),
  };
}
