import type { NodeFacts } from "./node.ts";

interface RivalMark {
  readonly rival: string;
  /** A taint key, or what it begins with where it ends in a slash. */
  readonly taint: string;
}

/**
 * Taints by which others say that they are taking a node away. Sources: Karpenter's disruption
 * controller (the second key before 1.0), cluster-autoscaler's scale-down, the AWS node termination
 * handler, AKS node auto-drain, GKE's maintenance handler and termination handler. Who only cordons (an
 * EKS managed node group, kubectl) is known by the cordon.
 */
const rivalMarks: readonly RivalMark[] = [
  { rival: "Karpenter", taint: "karpenter.sh/disrupted" },
  { rival: "Karpenter", taint: "karpenter.sh/disruption" },
  { rival: "cluster-autoscaler", taint: "ToBeDeletedByClusterAutoscaler" },
  { rival: "aws-node-termination-handler", taint: "aws-node-termination-handler/" },
  { rival: "AKS node auto-drain", taint: "remediator.kubernetes.azure.com/unschedulable" },
  { rival: "GKE", taint: "cloud.google.com/impending-node-termination" },
];

/** By kured's `--annotate-nodes`, for as long as it drains the node and restarts it. */
export const kuredAnnotation = "weave.works/kured-reboot-in-progress";

/** Who is already taking this node away; undefined where nobody is. */
export function rivalOf(node: NodeFacts): string | undefined {
  for (const { key } of node.taints) {
    for (const { rival, taint } of rivalMarks) {
      if (key === taint || (taint.endsWith("/") && key.startsWith(taint))) return rival;
    }
  }
  return node.annotations[kuredAnnotation] === undefined ? undefined : "kured";
}
