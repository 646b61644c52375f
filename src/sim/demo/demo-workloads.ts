import { podBehaviour } from "../cluster-controllers/kubelet.ts";

/** A workload of the demo: what it asks for, and how its programs behave. */
interface DemoWorkload {
  readonly name: string;
  readonly kind: "Deployment" | "StatefulSet";
  /** Replicas in a fleet of 18 nodes, and the fewest in a small one. */
  readonly replicas: number;
  readonly leastReplicas: number;
  readonly cpu: string;
  readonly graceSeconds: number;
  readonly startSeconds: number;
  /** From SIGTERM until its program has ended by itself. */
  readonly exitSeconds: number;
  readonly budget?: { readonly maxUnavailable: number | string } | { readonly spare: number };
}

/** A shop: servers that end quickly, a database that takes its time, workers that take longer. */
const workloads: readonly DemoWorkload[] = [
  {
    ...{ name: "web", kind: "Deployment", replicas: 24, leastReplicas: 2, cpu: "250m" },
    ...{ graceSeconds: 30, startSeconds: 8, exitSeconds: 6, budget: { maxUnavailable: "25%" } },
  },
  {
    ...{ name: "api", kind: "Deployment", replicas: 15, leastReplicas: 3, cpu: "500m" },
    ...{ graceSeconds: 60, startSeconds: 12, exitSeconds: 20, budget: { spare: 2 } },
  },
  {
    ...{ name: "checkout", kind: "Deployment", replicas: 9, leastReplicas: 2, cpu: "500m" },
    ...{ graceSeconds: 45, startSeconds: 20, exitSeconds: 25, budget: { maxUnavailable: 1 } },
  },
  {
    ...{ name: "db", kind: "StatefulSet", replicas: 3, leastReplicas: 3, cpu: "1" },
    ...{ graceSeconds: 120, startSeconds: 30, exitSeconds: 40, budget: { maxUnavailable: 1 } },
  },
  {
    ...{ name: "worker", kind: "Deployment", replicas: 18, leastReplicas: 2, cpu: "500m" },
    ...{ graceSeconds: 300, startSeconds: 5, exitSeconds: 90 },
  },
];

export interface DemoObject {
  /** Where it is created, such as `/apis/apps/v1/namespaces/shop/deployments`. */
  readonly path: string;
  readonly body: object;
}

const namespace = "shop";

/** What runs on the demo's fleet, in the order of creation. */
export function demoWorkloads(nodeCount: number): readonly DemoObject[] {
  return [
    { path: "/api/v1/namespaces", body: { metadata: { name: namespace } } },
    ...["node-exporter", "log-shipper"].map(daemonSet),
    ...workloads.flatMap((one) => {
      const replicas = Math.max(one.leastReplicas, Math.round((one.replicas * nodeCount) / 18));
      return [workloadObject(one, replicas), ...budgetObject(one, replicas)];
    }),
  ];
}

function workloadObject(workload: DemoWorkload, replicas: number): DemoObject {
  const { name, kind, cpu, graceSeconds, startSeconds, exitSeconds } = workload;
  const labels = { app: name };
  const annotations = {
    [podBehaviour.startSeconds]: String(startSeconds),
    [podBehaviour.exitSeconds]: String(exitSeconds),
  };
  const container = {
    name,
    image: `shop/${name}:1`,
    resources: { requests: { cpu, memory: "512Mi" } },
  };
  const spec = {
    replicas,
    selector: { matchLabels: labels },
    ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: "Parallel" } : {}),
    template: {
      metadata: { labels, annotations },
      spec: { terminationGracePeriodSeconds: graceSeconds, containers: [container] },
    },
  };
  return {
    path: `/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`,
    body: { metadata: { name, labels }, spec },
  };
}

function budgetObject({ name, budget }: DemoWorkload, replicas: number): readonly DemoObject[] {
  if (budget === undefined) return [];
  const limit = "spare" in budget ? { minAvailable: replicas - budget.spare } : budget;
  const spec = { ...limit, selector: { matchLabels: { app: name } } };
  const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  return [{ path, body: { metadata: { name }, spec } }];
}

function daemonSet(name: string): DemoObject {
  const labels = { app: name };
  const container = { name, image: `${name}:1`, resources: { requests: { cpu: "100m" } } };
  const spec = {
    priorityClassName: "system-node-critical",
    tolerations: [{ operator: "Exists" }],
    containers: [container],
  };
  return {
    path: "/apis/apps/v1/namespaces/kube-system/daemonsets",
    body: {
      metadata: { name, labels },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  };
}
