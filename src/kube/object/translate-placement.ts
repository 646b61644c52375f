import { parseQuantity } from "../../core/capacity/quantity.ts";
import {
  type Amounts,
  type LabelRequirement,
  largerOf,
  type NodeSelector,
  type NodeSelectorTerm,
  type PodPlacement,
  type PodTerm,
  sumOf,
} from "../../core/cluster/placement.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  oneOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";

const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] as const;
const required = "requiredDuringSchedulingIgnoredDuringExecution";

/** What a pod's spec asks of a place. Total: what is missing or odd asks nothing. */
export function translatePlacement(spec: Fields): PodPlacement {
  const affinity = fieldsOf(spec.affinity);
  return {
    requests: podRequests(spec),
    nodeSelector: textMapOf(spec.nodeSelector),
    requiredNodes: nodeSelectorOf(fieldsOf(affinity.nodeAffinity)[required]),
    podAffinity: termsOf(affinity.podAffinity),
    podAntiAffinity: termsOf(affinity.podAntiAffinity),
    schedulerName:
      spec.schedulerName === "default-scheduler" ? undefined : textOf(spec.schedulerName),
  };
}

/**
 * What a pod counts for on its node: the larger of what its containers ask for together and what
 * any one init container asks for while those before it that go on running (sidecars) are up; and
 * the overhead of its runtime. Source: k8s.io/component-helpers `resource/helpers.go`, PodRequests.
 */
export function podRequests(spec: Fields): Amounts {
  let running = listOf(spec.containers).map(requestsOf).reduce(sumOf, {});
  let sidecars: Amounts = {};
  let starting: Amounts = {};
  for (const container of listOf(spec.initContainers)) {
    const own = requestsOf(container);
    if (fieldsOf(container).restartPolicy === "Always") {
      running = sumOf(running, own);
      sidecars = sumOf(sidecars, own);
      starting = largerOf(starting, sidecars);
    } else starting = largerOf(starting, sumOf(sidecars, own));
  }
  const asked = largerOf(largerOf(running, starting), amountsOf(fieldsOf(spec.resources).requests));
  return sumOf(asked, amountsOf(spec.overhead));
}

/** A map of quantities; entries that are none are left out. */
export function amountsOf(value: unknown): Amounts {
  const amounts: Record<string, number> = {};
  for (const [resource, quantity] of Object.entries(fieldsOf(value))) {
    const amount = parseQuantity(quantity);
    if (amount !== undefined) amounts[resource] = amount;
  }
  return amounts;
}

/** A NodeSelector, as in node affinity; undefined where there is none. */
export function nodeSelectorOf(value: unknown): NodeSelector | undefined {
  const terms = fieldsOf(value).nodeSelectorTerms;
  if (!Array.isArray(terms)) return undefined;
  return { nodeSelectorTerms: terms.map((term) => toTerm(fieldsOf(term))) };
}

function toTerm(term: Fields): NodeSelectorTerm {
  return {
    matchExpressions: listOf(term.matchExpressions).map(toRequirement),
    matchFields: listOf(term.matchFields).map(toRequirement),
  };
}

/** One with an operator that is unknown selects nothing: `In` no value. */
function toRequirement(value: unknown): LabelRequirement {
  const requirement = fieldsOf(value);
  const operator = oneOf(operators, requirement.operator);
  const values = listOf(requirement.values).flatMap((one) => textOf(one) ?? []);
  const key = textOf(requirement.key) ?? "";
  return operator === undefined ? { key, operator: "In", values: [] } : { key, operator, values };
}

function termsOf(affinity: unknown): readonly PodTerm[] {
  return listOf(fieldsOf(affinity)[required]).map(fieldsOf);
}

function requestsOf(container: unknown): Amounts {
  return amountsOf(fieldsOf(fieldsOf(container).resources).requests);
}
