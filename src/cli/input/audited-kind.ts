/** A collection that the audit reads from a live cluster. */
export interface AuditedKind {
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
}

/** What the audit looks at in every namespace; pods are apart, there may be very many of them. */
export const namespacedKinds: readonly AuditedKind[] = [
  kind("apps/v1", "Deployment", "deployments"),
  kind("apps/v1", "StatefulSet", "statefulsets"),
  kind("apps/v1", "DaemonSet", "daemonsets"),
  kind("batch/v1", "Job", "jobs"),
  kind("batch/v1", "CronJob", "cronjobs"),
  kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
  kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
  kind("networking.k8s.io/v1", "Ingress", "ingresses"),
  kind("v1", "Service", "services"),
  kind("v1", "ReplicationController", "replicationcontrollers"),
];

export const podKind = kind("v1", "Pod", "pods");

/** Those that have no namespace. */
export const clusterKinds: readonly AuditedKind[] = [
  kind("v1", "Node", "nodes"),
  kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
];

function kind(apiVersion: string, name: string, resource: string): AuditedKind {
  const root = apiVersion.includes("/") ? "/apis" : "/api";
  return { path: `${root}/${apiVersion}/${resource}`, apiVersion, kind: name };
}
