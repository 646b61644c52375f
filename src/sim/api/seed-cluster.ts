import type { ApiContext } from "./api-context.ts";
import { createObject } from "./create-object.ts";
import { systemPriorityClasses } from "./pod-admission.ts";

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** What every cluster has from its first second: four namespaces and two priority classes. */
export function seedCluster(context: ApiContext): void {
  const namespaceType = context.registry.find("v1", "namespaces");
  const classType = context.registry.find("scheduling.k8s.io/v1", "priorityclasses");
  if (!namespaceType || !classType) return;
  for (const name of namespaces) {
    createObject(context, { type: namespaceType, namespace: "", body: { metadata: { name } } });
  }
  for (const [name, value] of Object.entries(systemPriorityClasses)) {
    const body = { metadata: { name }, value, preemptionPolicy: "PreemptLowerPriority" };
    createObject(context, { type: classType, namespace: "", body });
  }
}
