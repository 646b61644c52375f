import { podBehaviour } from "../../src/sim/cluster-controllers/kubelet.ts";
import type { Workload } from "./world.ts";

interface WorkloadObject {
  readonly path: string;
  readonly body: object;
}

/** The objects that a person creates for a workload of a world. */
export function workloadObjects(workload: Workload): readonly WorkloadObject[] {
  const { name, kind, replicas } = workload;
  if (kind === "Bare") {
    const path = "/api/v1/namespaces/default/pods";
    const pod = podOf(workload);
    const bare = Array.from({ length: replicas }, (_, index) => {
      const metadata = { ...pod.metadata, name: `${name}-${index}` };
      return { path, body: { ...pod, metadata } };
    });
    return [...bare, ...budgetOf(workload)];
  }
  const body = {
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      template: podOf(workload),
    },
  };
  const path = `/apis/apps/v1/namespaces/default/${kind.toLowerCase()}s`;
  return [{ path, body }, ...budgetOf(workload)];
}

function podOf(workload: Workload) {
  const { name, cpu, graceSeconds, exitSeconds, doNotDisturb, finalizer, zone } = workload;
  return {
    metadata: {
      labels: { app: name },
      ...(finalizer === true ? { finalizers: ["example.com/keep"] } : {}),
      annotations: {
        [podBehaviour.exitSeconds]: String(exitSeconds),
        ...(doNotDisturb === true ? { "lastcall.dev/do-not-disturb": "true" } : {}),
      },
    },
    spec: {
      terminationGracePeriodSeconds: graceSeconds,
      ...(zone === undefined ? {} : { nodeSelector: { "topology.kubernetes.io/zone": zone } }),
      containers: [{ name: "main", image: "app:1", resources: { requests: { cpu } } }],
    },
  };
}

function budgetOf({ name, maxUnavailable }: Workload): WorkloadObject[] {
  if (maxUnavailable === undefined) return [];
  const path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const spec = { maxUnavailable, selector: { matchLabels: { app: name } } };
  return [{ path, body: { metadata: { name }, spec } }];
}
