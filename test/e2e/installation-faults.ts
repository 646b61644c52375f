import {
  annotated,
  answering,
  type Change,
  changed,
  created,
  type Fault,
  idlePod,
  patched,
  removed,
  send,
  serverTime,
  version,
} from "./doctor-stage.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const ours = "/api/v1/namespaces/lastcall";
const controller = "/apis/apps/v1/namespaces/lastcall/deployments/lastcall";
const agent = "/apis/apps/v1/namespaces/lastcall/daemonsets/lastcall-agent";

const bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

const quotaOfNone = {
  ...{ apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "none" } },
  spec: {
    hard: { pods: "0" },
    scopeSelector: {
      matchExpressions: [
        { scopeName: "PriorityClass", operator: "In", values: ["system-node-critical"] },
      ],
    },
  },
};

/** Permissions of an optional part, without its admission policy. */
function granted(folder: string, bindingName: string): Pick<Fault, "make" | "mend"> {
  return {
    make: ({ apply }) => apply("-f", `deploy/${folder}/rbac.yaml`),
    mend: (stage) =>
      send(stage, { method: "DELETE", path: `${rbac}/clusterrolebindings/${bindingName}` }),
  };
}

function boundBy(name: string, action: string): Change {
  const of = (one: string) => ({ spec: { validationActions: [one] } });
  return changed(`${bindings}/${name}`, of(action), of("Deny"));
}

/** What a stolen token could do. */
const unguarded: readonly Fault[] = [
  {
    ...{ check: "admission", status: "Fail", what: "an admission policy without its binding" },
    says: "an agent may report a notice of another node: no admission policy refuses it",
    ...removed(`${bindings}/lastcall-agent`),
  },
  {
    ...{ check: "admission", status: "Fail", what: "a binding that only audits" },
    says: "an agent may report a notice of another node",
    ...boundBy("lastcall-agent", "Audit"),
  },
  {
    ...{ check: "admission", status: "Fail", what: "a binding that only warns" },
    says: "the controller may create any other pod",
    ...boundBy("lastcall-placeholder", "Warn"),
  },
  {
    ...{ check: "admission", status: "Fail", what: "the fallback `Cordon` without its policy" },
    says: "an agent may cordon another node",
    ...granted("agent-fallback/cordon", "lastcall-agent-fallback-cordon"),
  },
  {
    ...{ check: "admission", status: "Fail", what: "the fallback `Drain` without its policies" },
    says: "an agent may delete a pod of another node",
    ...granted("agent-fallback/drain", "lastcall-agent-fallback-drain"),
  },
  {
    ...{ check: "admission", status: "Fail", what: "`restart-owner` without its policy" },
    says: "the controller may change anything else in a workload",
    ...granted("restart-owner", "lastcall-restart-owner"),
  },
];

/** Faults of the API server, of objects in the cluster, and of RBAC. */
const foundations: readonly Fault[] = [
  {
    ...{ check: "api", status: "Fail", what: "an API server that does not respond" },
    says: "no response from",
    asked: ({ kubeconfig, nowhere }) => ({ flags: ["--kubeconfig", kubeconfig(nowhere, "none")] }),
  },
  {
    ...{ check: "api", status: "Fail", what: "Kubernetes 1.29", says: "v1.29.4" },
    asked: () => ({ api: answering("/version", version("1.29.4")) }),
  },
  {
    ...{ check: "clock", status: "Fail", what: "an API server whose clock is 30 s slow" },
    says: "behind",
    // The clocks that renew leases are ahead of it.
    also: ["lease"],
    asked: () => serverTime(-30),
  },
  {
    ...{ check: "clock", status: "Warn", what: "an API server whose clock is 8 s fast" },
    says: "ahead of",
    asked: () => serverTime(8),
  },
  {
    ...{ check: "crd-version", status: "Warn", what: "a resource definition of an older version" },
    says: "the schema of departures.lastcall.dev",
    make: ({ apply }) => apply("-f", "test/data/older-crds/departures.lastcall.dev.yaml"),
    mend: ({ apply }) => apply("-k", "deploy/crds"),
  },
  {
    ...{ check: "rights", status: "Fail", what: "no ClusterRoleBinding for the controller" },
    says: "the controller may not get nodes",
    // A token is recognized by its rights: what it may do still is not guarded.
    also: ["admission"],
    ...removed(`${rbac}/clusterrolebindings/lastcall`),
  },
  {
    ...{ check: "agent-rights", status: "Fail", what: "no ClusterRoleBinding for the agents" },
    says: "the agent may not",
    ...removed(`${rbac}/clusterrolebindings/lastcall-agent`),
  },
  {
    ...{ check: "reader", status: "Warn", what: "a caller without permission to list everything" },
    says: "requests refused",
    asked: async ({ world }) => ({
      flags: ["--kubeconfig", await world.controllerKubeconfig(), "-n", "lastcall"],
    }),
  },
  ...unguarded,
  {
    ...{ check: "priority-quota", status: "Fail", what: "no ResourceQuota for the agents" },
    says: "system-node-critical",
    ...removed(`${ours}/resourcequotas/lastcall-agent`),
  },
  {
    ...{ check: "priority-quota", status: "Fail", what: "a ResourceQuota that admits nothing" },
    says: "no pod of the agents is admitted: exceeded quota: none",
    ...created(`${ours}/resourcequotas`, quotaOfNone),
  },
  {
    ...{ check: "drainers", status: "Warn", what: "a group that may write departures" },
    says: "1 other has a right by which a node leaves: Group developers (write departures)",
    ...created(`${rbac}/clusterrolebindings`, {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding" },
      metadata: { name: "developers" },
      roleRef: {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "ClusterRole",
        name: "lastcall-agent",
      },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "developers" }],
    }),
  },
];

/** Faults of the controller's own installation. */
const ownParts: readonly Fault[] = [
  {
    ...{ check: "controller", status: "Fail", what: "the wrong namespace (`-n`)" },
    says: "no controller is installed in default",
    also: ["lease", "agents"],
    asked: () => ({ flags: ["-n", "default"] }),
  },
  {
    ...{ check: "namespace", status: "Fail", what: "a namespace that does not exist (`-n`)" },
    says: "the namespace lastcal does not exist",
    asked: () => ({ flags: ["-n", "lastcal"] }),
  },
  {
    ...{ check: "accounts", status: "Fail", what: "agents with the controller's ServiceAccount" },
    says: "controller and agents share the ServiceAccount lastcall",
    // Its token may report any node, and the agents' own account is nobody's.
    also: ["admission", "drainers"],
    ...changed(agent, withAccount("lastcall"), withAccount("lastcall-agent")),
  },
  {
    ...{ check: "controller", status: "Fail", what: "a Deployment scaled to zero" },
    says: "the controller has no replica",
    ...changed(controller, { spec: { replicas: 0 } }, { spec: { replicas: 2 } }),
  },
  {
    ...{ check: "controller", status: "Warn", what: "a single replica" },
    says: "no standby",
    ...changed(controller, { spec: { replicas: 1 } }, { spec: { replicas: 2 } }),
  },
  {
    ...{ check: "lease", status: "Fail", what: "two replicas with `--leader-elect=false`" },
    says: "runs with --leader-elect=false, and all 2 replicas act",
    make: patched(controller, variable("LEADER_ELECT", { value: "false" }), "strategic-merge"),
    mend: patched(controller, variable("LEADER_ELECT", { $patch: "delete" }), "strategic-merge"),
  },
  {
    ...{
      check: "lease",
      status: "Warn",
      what: "a leader whose clock is ahead of the API server's",
    },
    says: "ahead of the API server's",
    // Doctor's clock is ahead of it, too.
    also: ["clock"],
    asked: () => serverTime(-30),
  },
  {
    ...{ check: "dry-run", status: "Warn", what: "`LASTCALL_DRY_RUN` in the Deployment" },
    says: "writes nothing",
    make: patched(controller, variable("DRY_RUN", { value: "true" }), "strategic-merge"),
    mend: patched(controller, variable("DRY_RUN", { $patch: "delete" }), "strategic-merge"),
  },
  {
    ...{ check: "chart", status: "Warn", what: "a chart of another version" },
    says: "the chart is 0.0.1",
    ...changed(controller, charted("lastcall-0.0.1"), charted(null)),
  },
  {
    ...{ check: "images", status: "Fail", what: "a controller pod that cannot pull its image" },
    says: "stuck (ImagePullBackOff)",
    ...created(`${ours}/pods`, idlePod("stuck"), waitingFor("ImagePullBackOff")),
  },
  {
    ...{ check: "images", status: "Fail", what: "a controller pod that fits on no node" },
    says: "homeless (0/10 nodes are available",
    ...created(`${ours}/pods`, idlePod("homeless"), {
      conditions: [
        {
          ...{ type: "PodScheduled", status: "False", reason: "Unschedulable" },
          message: "0/10 nodes are available: 10 node(s) didn't match Pod's node affinity",
        },
      ],
    }),
  },
  {
    ...{ check: "placement", status: "Warn", what: "a controller pod on a Spot node" },
    says: "astray on spot-1",
    ...created(`${ours}/pods`, idlePod("astray", { nodeName: "spot-1" })),
  },
  {
    ...{ check: "placeholder-image", status: "Fail", what: "no PriorityClass for placeholders" },
    says: "lastcall-placeholder is missing",
    // No placeholder is admitted.
    also: ["admission"],
    ...removed("/apis/scheduling.k8s.io/v1/priorityclasses/lastcall-placeholder"),
  },
  {
    ...{
      check: "placeholder-image",
      status: "Fail",
      what: "a placeholder that cannot pull its image",
    },
    says: "1 placeholder cannot pull its image",
    ...created(`${ours}/pods`, idlePod("room", {}, "placeholder"), waitingFor("ErrImagePull")),
  },
  {
    ...{
      check: "service-account",
      status: "Fail",
      what: "an AWS role annotation that is not an ARN",
    },
    says: "is not the ARN of a role",
    ...annotated(`${ours}/serviceaccounts/lastcall`, "eks.amazonaws.com/role-arn", "lastcall"),
  },
  {
    ...{
      check: "service-account",
      status: "Fail",
      what: "an Azure identity, but pods without its label",
    },
    says: "lack the label azure.workload.identity/use",
    ...annotated(`${ours}/serviceaccounts/lastcall`, "azure.workload.identity/client-id", "1-2"),
  },
];

/** Faults of the installation itself while a controller leads. */
export const installationFaults: readonly Fault[] = [...foundations, ...ownParts];

/** Without new pods. */
function withAccount(serviceAccountName: string): object {
  const updateStrategy = { type: "OnDelete", rollingUpdate: null };
  return { spec: { updateStrategy, template: { spec: { serviceAccountName } } } };
}

function charted(chart: string | null): object {
  return { metadata: { labels: { "helm.sh/chart": chart } } };
}

function variable(option: string, how: object): object {
  const env = [{ name: `LASTCALL_${option}`, ...how }];
  return { spec: { template: { spec: { containers: [{ name: "controller", env }] } } } };
}

function waitingFor(reason: string): object {
  return {
    containerStatuses: [
      {
        ...{ name: "main", image: "x", imageID: "", ready: false, restartCount: 0 },
        state: { waiting: { reason } },
      },
    ],
  };
}
