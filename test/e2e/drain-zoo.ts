/**
 * One pod of each kind in the table of docs/drain.md, all on one node, and the fate of each.
 */

/** What `kubectl drain` or a drain plan does to a pod. */
export type Fate = "Leaves" | "Stays" | "Held";

export interface Kind {
  /** The app label of its pod, whose name may be longer. */
  readonly app: string;
  readonly kubectl: Fate;
  readonly plan: Fate;
  /** The reason in the plan's line. */
  readonly reason: string;
  /** The error with which kubectl refuses to start without flags. */
  readonly refusal?: RegExp;
}

/** If `plan` differs from `kubectl`, docs/drain.md says why. */
export const kinds: readonly Kind[] = [
  { app: "web", kubectl: "Leaves", plan: "Leaves", reason: "Evictable" },
  { app: "database", kubectl: "Leaves", plan: "Leaves", reason: "Evictable" },
  { app: "batch", kubectl: "Leaves", plan: "Leaves", reason: "Evictable" },
  {
    app: "logs",
    kubectl: "Stays",
    plan: "Stays",
    reason: "DaemonSet",
    refusal: /DaemonSet-managed/,
  },
  { app: "static", kubectl: "Stays", plan: "Stays", reason: "Mirror" },
  {
    app: "bare",
    kubectl: "Leaves",
    plan: "Leaves",
    reason: "NoController",
    refusal: /no controller/,
  },
  { app: "cache", kubectl: "Leaves", plan: "Leaves", reason: "EmptyDir", refusal: /local storage/ },
  { app: "socket", kubectl: "Leaves", plan: "Leaves", reason: "Evictable" },
  { app: "files", kubectl: "Leaves", plan: "Leaves", reason: "HostPath" },
  { app: "held", kubectl: "Held", plan: "Held", reason: "SingleReplica" },
  { app: "torn", kubectl: "Held", plan: "Held", reason: "MultipleBudgets" },
  // The differences.
  { app: "done", kubectl: "Leaves", plan: "Stays", reason: "Finished" },
  {
    app: "leaving",
    kubectl: "Leaves",
    plan: "Held",
    reason: "Terminating",
    refusal: /no controller/,
  },
  { app: "marked", kubectl: "Leaves", plan: "Held", reason: "DoNotDisturb" },
  { app: "karpenter", kubectl: "Leaves", plan: "Held", reason: "DoNotDisrupt" },
  { app: "autoscaler", kubectl: "Leaves", plan: "Held", reason: "NotSafeToEvict" },
];

interface PodShape {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

/** One List for kubectl. The test still has to finish `done` and to delete `leaving`. */
export function zoo(node: string): object {
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      ...["web", "held", "torn"].map((app) => workload("Deployment", app)),
      workload("StatefulSet", "database", {}, { serviceName: "database" }),
      workload("DaemonSet", "logs"),
      job("batch"),
      bare("static", node, { annotations: { "kubernetes.io/config.mirror": "x" } }),
      bare("bare", node),
      bare("done", node),
      bare("leaving", node, { spec: { terminationGracePeriodSeconds: 3600 } }),
      workload("Deployment", "cache", { spec: { volumes: [{ name: "v", emptyDir: {} }] } }),
      withHostPath("socket", "/run"),
      withHostPath("files", "/srv/files"),
      marked("marked", "lastcall.dev/do-not-disturb", "true"),
      marked("karpenter", "karpenter.sh/do-not-disrupt", "true"),
      marked("autoscaler", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
      budget("held", "held", { maxUnavailable: 0 }),
      budget("torn-a", "torn", { minAvailable: 0 }),
      budget("torn-b", "torn", { minAvailable: 0 }),
    ],
  };
}

function podOf(app: string, { annotations = {}, spec = {} }: PodShape) {
  const labels = { app, "e2e.lastcall.dev/ignores-sigterm": "true" };
  return {
    metadata: { labels, annotations },
    spec: { containers: [{ name: app, image: `registry.example/${app}:1` }], ...spec },
  };
}

function workload(kind: string, app: string, pod: PodShape = {}, more: object = {}): object {
  const template = podOf(app, pod);
  const spec = { selector: { matchLabels: { app } }, template, ...more };
  const replicas = kind === "DaemonSet" ? {} : { replicas: 1 };
  return { apiVersion: "apps/v1", kind, metadata: { name: app }, spec: { ...spec, ...replicas } };
}

function withHostPath(app: string, path: string): object {
  const mounts = [{ name: "v", mountPath: "/host" }];
  const containers = [{ name: app, image: `registry.example/${app}:1`, volumeMounts: mounts }];
  const spec = { containers, volumes: [{ name: "v", hostPath: { path } }] };
  return workload("Deployment", app, { spec });
}

function marked(app: string, annotation: string, value: string): object {
  return workload("Deployment", app, { annotations: { [annotation]: value } });
}

function job(app: string): object {
  const template = podOf(app, { spec: { restartPolicy: "Never" } });
  return { apiVersion: "batch/v1", kind: "Job", metadata: { name: app }, spec: { template } };
}

function bare(app: string, nodeName: string, pod: PodShape = {}): object {
  const { metadata, spec } = podOf(app, { ...pod, spec: { ...pod.spec, nodeName } });
  return { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, name: app }, spec };
}

function budget(name: string, app: string, spec: object): object {
  const selector = { matchLabels: { app } };
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name },
    spec: { ...spec, selector },
  };
}
