import { type Instant, parseDuration, parseInstant, plus } from "../time/time.ts";
import { bornAt, type NodeFacts } from "./node.ts";

export const holdAnnotation = "lastcall.dev/hold";

/** Marks of others that say the same as our own hold: leave this node where it is. */
const foreignHolds = [
  "cluster-autoscaler.kubernetes.io/scale-down-disabled",
  "karpenter.sh/do-not-disrupt",
] as const;

/** The annotation that `holdOf` goes by; undefined where there is none. */
export function holdMarkIn(annotations: NodeFacts["annotations"]): string | undefined {
  const foreign = foreignHolds.find((mark) => annotations[mark] === "true");
  if (foreign !== undefined) return foreign;
  const value = annotations[holdAnnotation];
  return value === undefined || value === "" || value === "false" ? undefined : holdAnnotation;
}

export type Hold =
  | { readonly kind: "None" }
  /** Planned like any other, but not to leave before `until`. */
  | { readonly kind: "Until"; readonly until: Instant }
  /**
   * Not planned while the mark is there. `readable` is false where the value means nothing to us.
   */
  | { readonly kind: "Always"; readonly mark: string; readonly readable: boolean };

const none: Hold = { kind: "None" };

/**
 * What a person's marks on a node ask for. `"true"` holds for good and an RFC 3339 instant until
 * then. A duration such as `"4h"` counts from the machine's launch time, as the duration of a pod's
 * `do-not-disturb` does from the pod's start: an annotation has no time of its own. A value that
 * cannot be read holds for good, because the person who wrote it wanted the node to stay.
 */
export function holdOf(node: NodeFacts): Hold {
  const mark = holdMarkIn(node.annotations);
  if (mark === undefined) return none;
  const value = node.annotations[mark] ?? "";
  if (value === "true") return { kind: "Always", mark, readable: true };
  const named = parseInstant(value);
  if (named !== undefined) return { kind: "Until", until: named };
  const age = parseDuration(value);
  const born = bornAt(node);
  if (age !== undefined && born !== undefined) return { kind: "Until", until: plus(born, age) };
  return { kind: "Always", mark, readable: age !== undefined };
}

interface RivalMark {
  readonly rival: string;
  /** A taint key, or what it begins with where it ends in a slash. */
  readonly taint: string;
  /** It removes nodes of its own accord; the others do so as the cloud takes them. */
  readonly removes?: boolean;
}

/**
 * Taints by which others say that they are taking a node away. Sources: Karpenter's disruption
 * controller (the second key before 1.0), cluster-autoscaler's scale-down, the AWS node termination
 * handler, AKS node auto-drain, GKE's maintenance handler and termination handler. Who only cordons
 * (an EKS managed node group, kubectl) is known by the cordon.
 */
const rivalMarks: readonly RivalMark[] = [
  { rival: "Karpenter", taint: "karpenter.sh/disrupted", removes: true },
  { rival: "Karpenter", taint: "karpenter.sh/disruption", removes: true },
  { rival: "cluster-autoscaler", taint: "ToBeDeletedByClusterAutoscaler", removes: true },
  { rival: "aws-node-termination-handler", taint: "aws-node-termination-handler/" },
  { rival: "AKS node auto-drain", taint: "remediator.kubernetes.azure.com/unschedulable" },
  { rival: "GKE", taint: "cloud.google.com/impending-node-termination" },
];

/** The instant at which estafette's killer takes a node. */
export const killerAnnotation = "estafette.io/gke-preemptible-killer-state";

/** By kured's `--annotate-nodes`, for as long as it drains the node and restarts it. */
export const kuredAnnotation = "weave.works/kured-reboot-in-progress";

/** Whether it removes nodes of its own accord, and not as the cloud takes them. */
export function removesNodes(rival: string): boolean {
  return rivalMarks.some((one) => one.rival === rival && one.removes);
}

/** Who is already taking this node away; undefined where nobody is. */
export function rivalOf(node: NodeFacts): string | undefined {
  for (const { key } of node.taints) {
    for (const { rival, taint } of rivalMarks) {
      if (key === taint || (taint.endsWith("/") && key.startsWith(taint))) return rival;
    }
  }
  return node.annotations[kuredAnnotation] === undefined ? undefined : "kured";
}
