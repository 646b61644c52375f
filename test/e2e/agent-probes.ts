import type { RunRequest } from "../support/control-plane-run.ts";

/** One request to try with a stolen token. */
export interface Probe {
  /** The request in RBAC terms, such as `patch nodes/status`. */
  readonly what: string;
  readonly call: Omit<RunRequest, "token">;
}

/** A node and its objects that the probes access. */
export interface ProbedNode {
  readonly name: string;
  /** The name of an existing Departure of this node. */
  readonly departure: string;
  /** A Departure of this node that an agent could create. */
  readonly newDeparture: object;
  /** A pod in `default` on this node. */
  readonly pod: { readonly name: string; readonly uid: string };
}

const core = "/api/v1";
const lastcall = "/apis/lastcall.dev/v1alpha1";
const ours = `${core}/namespaces/lastcall`;
const leases = "/apis/coordination.k8s.io/v1/namespaces";
const merge = "application/merge-patch+json";
const strategic = "application/strategic-merge-patch+json";
const apply = "application/apply-patch+yaml";

/** A dry run changes nothing, but permissions and admission are checked. */
function dry(path: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}dryRun=All`;
}

function post(what: string, path: string, body: object): Probe {
  return { what: `create ${what}`, call: { method: "POST", path: dry(path), body } };
}

function patch(what: string, path: string, body: object, contentType = merge): Probe {
  return { what: `patch ${what}`, call: { method: "PATCH", path: dry(path), body, contentType } };
}

function put(what: string, path: string, body: object): Probe {
  return { what: `update ${what}`, call: { method: "PUT", path: dry(path), body } };
}

function get(what: string, path: string, verb = "get"): Probe {
  return { what: `${verb} ${what}`, call: { path } };
}

function remove(what: string, path: string, verb = "delete"): Probe {
  return { what: `${verb} ${what}`, call: { method: "DELETE", path: dry(path) } };
}

const label = { metadata: { labels: { probe: "yes" } } };
const podOn = (node: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "probe" },
  spec: { nodeName: node, containers: [{ name: "main", image: "registry.example/main:1" }] },
});

/** All verbs and subresources that concern one node. */
export function probesOfNode(node: ProbedNode): readonly Probe[] {
  const { name } = node;
  const one = `${lastcall}/departures/${node.departure}`;
  const pods = `${core}/namespaces/default/pods`;
  const pod = `${pods}/${node.pod.name}`;
  const its = `${core}/nodes/${name}`;
  const metadata = { name: node.pod.name };
  const deleteOptions = { preconditions: { uid: node.pod.uid } };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions };
  const target = { apiVersion: "v1", kind: "Node", name };
  const binding = { apiVersion: "v1", kind: "Binding", metadata, target };
  const whole = { ...node.newDeparture, metadata: { name: node.departure } };
  const deadlineAt = "2026-11-20T00:02:00Z";
  const notice = { noticedAt: "2026-11-20T00:00:00Z", source: "agent/gcp/preempted", deadlineAt };
  const status = { status: { phase: "Ended", outcome: "Failed" } };
  const marked = {
    metadata: { annotations: { "lastcall.dev/departure": node.departure } },
    spec: { unschedulable: true },
  };
  const departing = { type: "Departing", status: "True", reason: "Probe", message: "" };
  return [
    post("departures", `${lastcall}/departures`, node.newDeparture),
    get("departures", one),
    patch("departures", one, { spec: notice }),
    put("departures", one, whole),
    patch("departures by apply", `${one}?fieldManager=probe&force=true`, whole, apply),
    remove("departures", one),
    get("departures/status", `${one}/status`),
    patch("departures/status", `${one}/status`, status),
    put("departures/status", `${one}/status`, { ...whole, ...status }),
    get("nodes", its),
    patch("nodes", its, marked),
    put("nodes", its, { apiVersion: "v1", kind: "Node", metadata: { name } }),
    remove("nodes", its),
    patch("nodes/status", `${its}/status`, { status: { conditions: [departing] } }, strategic),
    put("nodes/status", `${its}/status`, { apiVersion: "v1", kind: "Node", metadata: { name } }),
    get("nodes/proxy", `${its}/proxy/configz`),
    get("pods", pod),
    get("pods of the node", `${core}/pods?fieldSelector=spec.nodeName%3D${name}`, "list"),
    post("pods", pods, podOn(name)),
    patch("pods", pod, label),
    put("pods", pod, { ...podOn(name), metadata }),
    remove("pods", pod),
    patch("pods/status", `${pod}/status`, { status: { phase: "Failed" } }),
    patch("pods/ephemeralcontainers", `${pod}/ephemeralcontainers`, { spec: {} }),
    patch("pods/resize", `${pod}/resize`, { spec: {} }),
    post("pods/eviction", `${pod}/eviction`, eviction),
    post("pods/binding", `${pod}/binding`, binding),
    get("pods/log", `${pod}/log`),
    get("pods/exec", `${pod}/exec?command=true&stdout=true`),
    get("pods/portforward", `${pod}/portforward?ports=80`),
    get("leases of kubelets", `${leases}/kube-node-lease/leases/${name}`),
    patch("leases of kubelets", `${leases}/kube-node-lease/leases/${name}`, label),
  ];
}

/** Requests that concern no node or all nodes. */
export function probesOfCluster(): readonly Probe[] {
  const admission = "/apis/admissionregistration.k8s.io/v1";
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const policies = `${lastcall}/departurepolicies`;
  const definition = `${definitions}/departures.lastcall.dev`;
  const event = {
    ...{ apiVersion: "v1", kind: "Event", metadata: { name: "probe", namespace: "lastcall" } },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "lastcall", name: "probe" },
  };
  const tokenRequest = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const policy = { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" };
  const binding = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding" };
  return [
    get("departures", `${lastcall}/departures`, "list"),
    get("departures", `${lastcall}/departures?watch=1&timeoutSeconds=1`, "watch"),
    remove("departures", `${lastcall}/departures`, "deletecollection"),
    get("departurepolicies", policies, "list"),
    get("departurepolicies", `${policies}/probed`),
    post("departurepolicies", policies, { ...policy, metadata: { name: "probe" }, spec: {} }),
    patch("departurepolicies", `${policies}/probed`, { spec: { paused: true } }),
    patch("departurepolicies/status", `${policies}/probed/status`, { status: {} }),
    remove("departurepolicies", `${policies}/probed`),
    get("nodes", `${core}/nodes`, "list"),
    get("nodes", `${core}/nodes?watch=1&timeoutSeconds=1`, "watch"),
    remove("nodes", `${core}/nodes?labelSelector=none%3Dsuch`, "deletecollection"),
    get("pods of all nodes", `${core}/pods`, "list"),
    get("pods", `${core}/pods?watch=1&timeoutSeconds=1`, "watch"),
    remove("pods", `${core}/namespaces/default/pods`, "deletecollection"),
    get("namespaces", `${core}/namespaces`, "list"),
    get("events", `${core}/events`, "list"),
    post("events", `${ours}/events`, event),
    get("secrets", `${core}/secrets`, "list"),
    get("secrets", `${ours}/secrets/probed`),
    get("configmaps", `${ours}/configmaps`, "list"),
    get("serviceaccounts", `${ours}/serviceaccounts/lastcall`),
    post("serviceaccounts/token", `${ours}/serviceaccounts/lastcall/token`, tokenRequest),
    post("serviceaccounts/token of its own", `${ours}/serviceaccounts/lastcall-agent/token`, {
      ...tokenRequest,
    }),
    {
      what: "impersonate users",
      call: { path: "/version", headers: { "impersonate-user": "e2e-admin" } },
    },
    {
      what: "impersonate serviceaccounts",
      call: {
        path: `${lastcall}/departures`,
        headers: { "impersonate-user": "system:serviceaccount:lastcall:lastcall" },
      },
    },
    get("leases of controllers", `${leases}/lastcall/leases/lastcall`),
    get("leases of controllers", `${leases}/lastcall/leases`, "list"),
    patch("leases of controllers", `${leases}/lastcall/leases/lastcall`, label),
    remove("leases of controllers", `${leases}/lastcall/leases/lastcall`),
    patch("daemonsets", "/apis/apps/v1/namespaces/lastcall/daemonsets/lastcall-agent", label),
    get("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", "list"),
    get("customresourcedefinitions", definition),
    patch("customresourcedefinitions", definition, label),
    remove("customresourcedefinitions", definition),
    remove("admission policies", `${admission}/validatingadmissionpolicies/lastcall-agent`),
    remove(
      "admission policies' bindings",
      `${admission}/validatingadmissionpolicybindings/lastcall-agent`,
    ),
    patch("clusterroles", `${rbac}/clusterroles/lastcall-agent`, label),
    post("clusterrolebindings", `${rbac}/clusterrolebindings`, {
      ...{ ...binding, metadata: { name: "probe" }, roleRef },
      subjects: [{ kind: "ServiceAccount", name: "lastcall-agent", namespace: "lastcall" }],
    }),
  ];
}
