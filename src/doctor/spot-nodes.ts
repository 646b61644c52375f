import type { NodeFacts } from "../core/cluster/node.ts";
import { defaultNodeSelector, matchesNodeSelector, selectPolicy } from "../core/policy/selector.ts";
import { type DoctorFacts, type Fact, known } from "./facts.ts";

/** Nodes that a cloud calls Spot, or that some policy owns. */
export function spotNodes({
  nodes,
  policies,
}: Pick<DoctorFacts, "nodes" | "policies">): Fact<readonly NodeFacts[]> {
  if (nodes.kind === "Unknown") return nodes;
  const owners = policies.kind === "Known" ? policies.value.policies : [];
  const isSpot = (node: NodeFacts) =>
    matchesNodeSelector(node, defaultNodeSelector) || selectPolicy(node, owners) !== undefined;
  return known(nodes.value.filter(isSpot));
}
