interface App {
  readonly name: string;
  readonly replicas: number;
  /** How long a pod takes to exit after SIGTERM. */
  readonly exitAfter: string;
  readonly budget: { readonly maxUnavailable: number | string } | { readonly minAvailable: number };
}

const apps: readonly App[] = [
  { name: "web", replicas: 20, exitAfter: "1s", budget: { maxUnavailable: 2 } },
  { name: "api", replicas: 15, exitAfter: "2s", budget: { maxUnavailable: 1 } },
  { name: "cart", replicas: 12, exitAfter: "1s", budget: { maxUnavailable: "10%" } },
  { name: "search", replicas: 9, exitAfter: "1s", budget: { minAvailable: 8 } },
  { name: "stream", replicas: 4, exitAfter: "2s", budget: { minAvailable: 3 } },
];

export const podCount = apps.reduce((sum, { replicas }) => sum + replicas, 0);

/**
 * The workload of the fleet, as one List: five Deployments with sixty pods, each with a budget, and
 * a DaemonSet.
 */
export function workload(each: Wish = {}): object {
  const items = [...apps.flatMap((app) => objectsOf(app, each)), daemonSet];
  return { apiVersion: "v1", kind: "List", items };
}

interface Wish {
  /** The memory request of each pod except the DaemonSet's, such as 1Gi; default none. */
  readonly memory?: string;
  /** Replaces the budgets of all apps. */
  readonly budget?: App["budget"];
}

/** One Deployment `web`, whose pods exit after a second, spread over the nodes, and its budget. */
export function spreadWorkload(replicas: number, maxUnavailable: string): object {
  const topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: { app: "web" } },
    },
  ];
  const containers = [{ name: "web", image: "registry.example/web:1" }];
  const items = budgetedDeployment({
    ...{ name: "web", replicas, budget: { maxUnavailable } },
    annotations: { "e2e.lastcall.dev/exit-after": "1s" },
    spec: { containers, topologySpreadConstraints },
  });
  return { apiVersion: "v1", kind: "List", items };
}

function objectsOf({ name, replicas, exitAfter, budget: own }: App, wish: Wish): object[] {
  const { budget = own, memory } = wish;
  const annotations = {
    "e2e.lastcall.dev/exit-after": exitAfter,
    // A pod that is ready at once would restore a budget before anybody could overdraw it.
    "e2e.lastcall.dev/ready-after": "1s",
  };
  const spec = { containers: [container(name, memory === undefined ? {} : { memory })] };
  return budgetedDeployment({ name, replicas, budget, annotations, spec });
}

function budgetedDeployment(
  parts: Pick<App, "name" | "replicas" | "budget"> & {
    readonly annotations: object;
    readonly spec: object;
  },
): object[] {
  const { name, replicas, budget, annotations, spec } = parts;
  const labels = { app: name };
  const selector = { matchLabels: labels };
  const template = { metadata: { labels, annotations }, spec };
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name },
      spec: { replicas, selector, template },
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name },
      spec: { ...budget, selector },
    },
  ];
}

const daemonSet = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "node-logs" },
  spec: {
    selector: { matchLabels: { app: "node-logs" } },
    template: {
      metadata: { labels: { app: "node-logs" } },
      spec: { containers: [container("node-logs")] },
    },
  },
};

function container(name: string, more: Pick<Wish, "memory"> = {}) {
  const resources = { requests: { cpu: "100m", ...more } };
  return { name, image: `registry.example/${name}:1`, resources };
}
