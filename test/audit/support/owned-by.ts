const groups: Readonly<Record<string, string>> = {
  Deployment: "apps/v1",
  ReplicaSet: "apps/v1",
  Job: "batch/v1",
  Kafka: "kafka.strimzi.io/v1",
  Prometheus: "monitoring.coreos.com/v1",
  Revision: "serving.knative.dev/v1",
  Rollout: "argoproj.io/v1alpha1",
  Service: "serving.knative.dev/v1",
  SparkApplication: "sparkoperator.k8s.io/v1beta2",
};

/** The metadata, in flow YAML, of what an object of this kind owns. */
export function ownedBy(kind: string, name: string): string {
  const apiVersion = groups[kind] ?? "v1";
  return `ownerReferences: [{apiVersion: ${apiVersion}, kind: ${kind}, name: ${name}, uid: u1, controller: true}]`;
}
