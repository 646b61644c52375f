import { meetsRequirement } from "../../core/cluster/label-selector.ts";
import type { Taint } from "../../core/cluster/node.ts";
import type { Toleration } from "../../core/cluster/pod.ts";
import type { NodeObject, NodeTerm, PodSpec } from "./cluster-object.ts";

/** Whether a pod's selector and required affinity choose the node. */
export function choosesNode(spec: PodSpec, node: NodeObject): boolean {
  const labels = node.metadata.labels ?? {};
  const selector = Object.entries(spec.nodeSelector ?? {});
  if (!selector.every(([label, value]) => labels[label] === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => termFits(term, node));
}

/** Whether a pod may come to the node for all its taints; PreferNoSchedule does not keep it out. */
export function toleratesTaints(
  tolerations: readonly Toleration[] | undefined,
  taints: readonly Taint[] | undefined,
): boolean {
  return (taints ?? []).every(
    (taint) =>
      taint.effect === "PreferNoSchedule" ||
      (tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

/** Source: k8s.io/api `core/v1/toleration.go`, ToleratesTaint. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
}

function termFits(term: NodeTerm, node: NodeObject): boolean {
  const labels = node.metadata.labels ?? {};
  const fields = { "metadata.name": node.metadata.name };
  const expressions = term.matchExpressions ?? [];
  const matchFields = term.matchFields ?? [];
  if (expressions.length + matchFields.length === 0) return false;
  return (
    expressions.every((one) => meetsRequirement(labels, one)) &&
    matchFields.every((one) => meetsRequirement(fields, one))
  );
}
