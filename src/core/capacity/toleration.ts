import type { Taint } from "../cluster/node.ts";
import type { Toleration } from "../cluster/pod.ts";

/**
 * The first taint that keeps a pod off a node; undefined where none does. PreferNoSchedule is a
 * wish. Source: k8s.io/component-helpers `scheduling/corev1/helpers.go`.
 */
export function repellingTaint(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  return taints.find(
    (taint) =>
      taint.effect !== "PreferNoSchedule" && !tolerations.some((one) => tolerates(one, taint)),
  );
}

/** Source: k8s.io/api `core/v1/toleration.go`, ToleratesTaint. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
}
