/** A permission by which a node can be made to leave. */
export interface DrainRight {
  /** As the report names it. */
  readonly name: string;
  readonly verbs: readonly string[];
  readonly group: string;
  /** With its subresource, as in a role. */
  readonly resource: string;
  /** Has this effect also if granted only in the namespace of the installation or kube-system. */
  readonly own?: true;
  /** A rule that is limited by name has this effect only for these names; absent: for any. */
  readonly names?: readonly string[];
}

export interface Drainer {
  /** Such as `ServiceAccount ops/deployer` or `Group developers`. */
  readonly name: string;
  /** The first of its rights, in the order of the list. */
  readonly right: string;
  /** A group that every user or every pod belongs to. */
  readonly isEverybody: boolean;
}

const writes = ["create", "update", "patch"];
const changes = ["update", "patch"];

function lastcall(resource: string, verbs: readonly string[]): DrainRight {
  return { name: `write ${resource}`, verbs, group: "lastcall.dev", resource };
}

/** Whoever runs a pod in the namespace can run it with the controller's ServiceAccount. */
function inOwnNamespace(
  name: string,
  { verbs = writes, group = "", resources }: OwnRights,
): readonly DrainRight[] {
  return resources.map((resource) => ({ name, verbs, group, resource, own: true }));
}

interface OwnRights {
  readonly verbs?: readonly string[];
  readonly group?: string;
  readonly resources: readonly string[];
}

const runPods = "run pods in Lastcall's namespace";
const useAccount = "take the identity of Lastcall's ServiceAccounts";

/** Instead of the name of such a right, where it is granted in kube-system. */
export const actAsSystem = "act as a part of Kubernetes in kube-system";

const identities = "authentication.k8s.io";

/** The signers whose certificates are credentials for the API server, by name and by domain. */
const clientSigners = [
  "kubernetes.io/kube-apiserver-client",
  "kubernetes.io/kube-apiserver-client-kubelet",
  "kubernetes.io/*",
];

/**
 * A webhook or policy that changes the pods of the controller or a Departure, a webhook that
 * converts Departures, or a server of its own for their group.
 */
const changesObjects: readonly DrainRight[] = [
  ...["mutatingwebhookconfigurations", "mutatingadmissionpolicies"].map((resource) => ({
    ...{ verbs: writes, group: "admissionregistration.k8s.io", resource },
  })),
  {
    ...{ verbs: changes, group: "apiextensions.k8s.io", resource: "customresourcedefinitions" },
    names: ["departures.lastcall.dev", "departurepolicies.lastcall.dev"],
  },
  {
    ...{ verbs: changes, group: "apiregistration.k8s.io", resource: "apiservices" },
  },
].map((one) => ({ name: "change what the API server is sent or responds", ...one }));

/** All of them; docs/security.md says what each leads to. */
export const drainRights: readonly DrainRight[] = [
  lastcall("departures", writes),
  lastcall("departures/status", changes),
  lastcall("departurepolicies", writes),
  // A new Node may name a machine that is no node, and a policy then releases it.
  { name: "change nodes", verbs: writes, group: "", resource: "nodes" },
  { name: "change nodes/status", verbs: changes, group: "", resource: "nodes/status" },
  ...inOwnNamespace(useAccount, { verbs: ["create"], resources: ["serviceaccounts/token"] }),
  ...inOwnNamespace(useAccount, { verbs: ["impersonate"], resources: ["serviceaccounts"] }),
  { name: useAccount, verbs: ["impersonate"], group: "", resource: "users" },
  // With any account of one's own as the user, and system:masters as the group.
  { name: useAccount, verbs: ["impersonate"], group: "", resource: "groups" },
  // Constrained impersonation, Kubernetes 1.36: apiserver, filters/impersonation/mode.go. A pod
  // that acts as the node it runs on can do no more than that node's kubelet.
  ...inOwnNamespace(useAccount, {
    ...{ verbs: ["impersonate:serviceaccount"], group: identities },
    resources: ["serviceaccounts"],
  }),
  ...[
    { verbs: ["impersonate:user-info"], resource: "users" },
    { verbs: ["impersonate:arbitrary-node"], resource: "nodes" },
  ].map((one) => ({ name: "act as another user or node", group: identities, ...one })),
  {
    ...{ name: "approve certificates of any user", verbs: ["approve"] },
    ...{ group: "certificates.k8s.io", resource: "signers", names: clientSigners },
  },
  // A Secret of the type kubernetes.io/service-account-token gets a token.
  ...inOwnNamespace(useAccount, { verbs: ["create"], resources: ["secrets"] }),
  // A running pod takes another image.
  ...inOwnNamespace(runPods, { resources: ["pods", "replicationcontrollers"] }),
  ...inOwnNamespace(runPods, { verbs: changes, resources: ["pods/ephemeralcontainers"] }),
  // A WebSocket is opened with GET: https://github.com/kubernetes/kubernetes/issues/133515.
  ...inOwnNamespace(runPods, { verbs: ["create", "get"], resources: ["pods/exec"] }),
  ...inOwnNamespace(runPods, {
    group: "apps",
    resources: ["deployments", "daemonsets", "statefulsets", "replicasets"],
  }),
  ...inOwnNamespace(runPods, { group: "batch", resources: ["jobs", "cronjobs"] }),
  {
    ...{ name: "run commands in any pod by its kubelet", verbs: ["create", "get"] },
    ...{ group: "", resource: "nodes/proxy" },
  },
  ...changesObjects,
  ...inOwnNamespace("grant any right", {
    ...{ verbs: ["bind", "escalate"], group: "rbac.authorization.k8s.io" },
    resources: ["clusterroles", "roles"],
  }),
];
