import type { NodeFacts } from "../cluster/node.ts";
import type { InstanceRule, ReleaseMode } from "./policy.ts";

/** Karpenter's own label: the NodePool that has made the node, and is to make another. */
const nodePoolLabel = "karpenter.sh/nodepool";

type Labelled = Pick<NodeFacts, "labels">;

/** Whether the node's machine is Karpenter's, which then alone may take it. */
export function isKarpenters({ labels }: Labelled): boolean {
  return labels[nodePoolLabel] !== undefined;
}

/**
 * How the machine of a node is released. What `Recreate` promises, another in its place where one
 * is needed, is done of Karpenter's nodes by deleting their NodeClaims.
 */
export function releaseModeOf(
  node: Labelled,
  { release }: Pick<InstanceRule, "release">,
): ReleaseMode {
  return release === "Recreate" && isKarpenters(node) ? "NodeClaim" : release;
}

/**
 * A mode that the machine's owner does not allow, as far as the node shows; says what to write
 * instead.
 */
export function ownerProblem(node: Labelled, mode: ReleaseMode): string | undefined {
  if (!isKarpenters(node) || (mode !== "Delete" && mode !== "DeleteInstance")) return undefined;
  const pool = node.labels[nodePoolLabel];
  return `the machine is Karpenter's (NodePool ${pool}), set instance.release to NodeClaim instead of ${mode}`;
}
