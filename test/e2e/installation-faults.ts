import {
  annotated,
  answering,
  changed,
  created,
  type Fault,
  idlePod,
  patched,
  removed,
  serverTime,
  version,
} from "./doctor-stage.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const ours = "/api/v1/namespaces/lastcall";
const controller = "/apis/apps/v1/namespaces/lastcall/deployments/lastcall";

/** Faults of the API server, of objects in the cluster, and of RBAC. */
const foundations: readonly Fault[] = [
  {
    ...{ check: "api", status: "Fail", what: "an API server that does not respond" },
    says: "no response from",
    asked: ({ kubeconfig, nowhere }) => ({ flags: ["--kubeconfig", kubeconfig(nowhere, "none")] }),
  },
  {
    ...{ check: "api", status: "Warn", what: "Kubernetes 1.29", says: "v1.29.4" },
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
  {
    ...{ check: "admission", status: "Warn", what: "an admission policy without its binding" },
    says: "lastcall-agent",
    ...removed(
      "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/lastcall-agent",
    ),
  },
  {
    ...{ check: "priority-quota", status: "Fail", what: "no ResourceQuota for the agents" },
    says: "system-node-critical",
    ...removed(`${ours}/resourcequotas/lastcall-agent`),
  },
];

/** Faults of the controller's own installation. */
const ownParts: readonly Fault[] = [
  {
    ...{ check: "controller", status: "Fail", what: "the wrong namespace (`-n`)" },
    says: "no controller is installed in default",
    also: ["rights", "lease", "agents"],
    asked: () => ({ flags: ["-n", "default"] }),
  },
  {
    ...{ check: "controller", status: "Fail", what: "a Deployment scaled to zero" },
    says: "none of the controller's",
    ...changed(controller, { spec: { replicas: 0 } }, { spec: { replicas: 2 } }),
  },
  {
    ...{ check: "controller", status: "Warn", what: "a single replica" },
    says: "no standby",
    ...changed(controller, { spec: { replicas: 1 } }, { spec: { replicas: 2 } }),
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
    make: patched(controller, dryRun({ value: "true" }), "strategic-merge"),
    mend: patched(controller, dryRun({ $patch: "delete" }), "strategic-merge"),
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
    ...{ check: "placement", status: "Warn", what: "a controller pod on a Spot node" },
    says: "astray on spot-1",
    ...created(`${ours}/pods`, idlePod("astray", { nodeName: "spot-1" })),
  },
  {
    ...{ check: "placeholder-image", status: "Fail", what: "no PriorityClass for placeholders" },
    says: "lastcall-placeholder is missing",
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

function charted(chart: string | null): object {
  return { metadata: { labels: { "helm.sh/chart": chart } } };
}

function dryRun(how: object): object {
  const env = [{ name: "LASTCALL_DRY_RUN", ...how }];
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
