import {
  meetsRequirement,
  type NodeSelector,
  type NodeSelectorTerm,
} from "../cluster/label-selector.ts";
import type { NodeFacts } from "../cluster/node.ts";
import type { Policy } from "./policy.ts";

/** Nodes that a cloud or a provisioner labels as Spot or preemptible; any one label is enough. */
export const defaultNodeSelector: NodeSelector = {
  nodeSelectorTerms: [
    labelled("cloud.google.com/gke-preemptible", "true"),
    labelled("cloud.google.com/gke-spot", "true"),
    labelled("cloud.google.com/gke-provisioning", "spot", "preemptible"),
    labelled("eks.amazonaws.com/capacityType", "SPOT"),
    labelled("karpenter.sh/capacity-type", "spot"),
    labelled("kubernetes.azure.com/scalesetpriority", "spot"),
    labelled("node.kubernetes.io/lifecycle", "spot"),
  ],
};

export interface PolicyChoice {
  readonly policy: Policy;
  /** Other policies of the same weight that match too and lost by name only; sorted. */
  readonly tiedWith: readonly string[];
}

const nobody: readonly string[] = [];

/**
 * The policy that a node falls under: of those that match the one with the highest weight, then
 * the first by name. Undefined where none matches.
 */
export function selectPolicy(
  node: NodeFacts,
  policies: readonly Policy[],
): PolicyChoice | undefined {
  let policy: Policy | undefined;
  let tied = nobody;
  for (const other of policies) {
    if (policy !== undefined && other.weight < policy.weight) continue;
    if (!matchesNodeSelector(node, other.nodeSelector ?? defaultNodeSelector)) continue;
    if (policy === undefined || other.weight > policy.weight) {
      policy = other;
      tied = nobody;
    } else if (other.name < policy.name) {
      tied = [...tied, policy.name];
      policy = other;
    } else tied = [...tied, other.name];
  }
  return policy && { policy, tiedWith: tied === nobody ? nobody : [...tied].sort() };
}

/**
 * Whether any term selects the node, as in node affinity: the requirements of a term must all hold,
 * a term without requirements selects nothing, and so does a selector without terms.
 */
export function matchesNodeSelector(node: NodeFacts, selector: NodeSelector): boolean {
  for (const term of selector.nodeSelectorTerms) if (matchesTerm(node, term)) return true;
  return false;
}

function matchesTerm(node: NodeFacts, term: NodeSelectorTerm): boolean {
  const { matchExpressions, matchFields } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  for (const wanted of matchExpressions) {
    if (!meetsRequirement(node.labels, wanted)) return false;
  }
  // Node affinity knows one field; a requirement on any other selects nothing.
  return matchFields.every(
    (wanted) =>
      wanted.key === "metadata.name" && meetsRequirement({ "metadata.name": node.name }, wanted),
  );
}

function labelled(key: string, ...values: string[]): NodeSelectorTerm {
  return { matchExpressions: [{ key, operator: "In", values }], matchFields: [] };
}
