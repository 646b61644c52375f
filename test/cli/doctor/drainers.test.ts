import { describe, expect, it } from "vitest";
import { drainersIn } from "../../../src/cli/doctor/drainers.ts";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";

const own = {
  namespace: "lastcall",
  accounts: new Set(["lastcall/lastcall", "lastcall/lastcall-agent"]),
};
const ann = { kind: "User", name: "ann" };

interface RuleText {
  readonly verbs: string;
  readonly groups?: string;
  readonly resources: string;
  readonly resourceNames?: readonly string[];
}

function ruleOf({ verbs, groups = "", resources, resourceNames }: RuleText) {
  const apiGroups = groups.split(" ");
  return { verbs: verbs.split(" "), apiGroups, resources: resources.split(" "), resourceNames };
}

function role(name: string, rule: RuleText, namespace?: string): KubeObject {
  return { metadata: { name, namespace: namespace as string }, rules: [ruleOf(rule)] };
}

function binding(kind: string, subject: object, namespace?: string): KubeObject {
  const metadata = { name: "b", namespace: namespace as string };
  return { metadata, roleRef: { kind, name: "r" }, subjects: [subject] };
}

/** Who drains if this rule is bound to the subject in the whole cluster. */
function wide(rule: RuleText, subject: object = ann) {
  return drainersIn(
    {
      ...{ clusterRoles: [role("r", rule)], roles: [], roleBindings: [] },
      clusterRoleBindings: [binding("ClusterRole", subject)],
    },
    own,
  );
}

const nodes = { verbs: "patch", resources: "nodes" };
const approve = { verbs: "approve", groups: "certificates.k8s.io", resources: "signers" };
const changesObjects = "change what the API server is sent or responds";
const definitions = "customresourcedefinitions";
const validating = "validatingwebhookconfigurations";
const clientSigner = "kubernetes.io/kube-apiserver-client";

describe("who can make a node leave", () => {
  it.each([
    [{ verbs: "create", groups: "lastcall.dev", resources: "departures" }, "write departures"],
    [{ verbs: "*", groups: "lastcall.dev", resources: "*" }, "write departures"],
    [
      { verbs: "patch", groups: "lastcall.dev", resources: "departures/status" },
      "write departures/status",
    ],
    [{ verbs: "update", groups: "*", resources: "departurepolicies" }, "write departurepolicies"],
    [nodes, "change nodes"],
    // With the name and the providerID of a machine that is no node.
    [{ verbs: "create", resources: "nodes" }, "change nodes"],
    [{ verbs: "get update", resources: "*/status" }, "change nodes/status"],
    [{ ...nodes, resourceNames: ["n1"] }, "change nodes"],
    [
      { verbs: "create", resources: "serviceaccounts/token" },
      "take the identity of Lastcall's ServiceAccounts",
    ],
    [{ verbs: "create", resources: "pods" }, "run pods in Lastcall's namespace"],
    [
      { verbs: "patch", groups: "apps", resources: "deployments" },
      "run pods in Lastcall's namespace",
    ],
    // The image of a running pod can be changed.
    [{ verbs: "patch", resources: "pods" }, "run pods in Lastcall's namespace"],
    [{ verbs: "patch", resources: "pods/ephemeralcontainers" }, "run pods in Lastcall's namespace"],
    // Authorized as get, if kubectl uses a WebSocket.
    [{ verbs: "get", resources: "pods/exec" }, "run pods in Lastcall's namespace"],
    // One of the type kubernetes.io/service-account-token gets a token.
    [{ verbs: "create", resources: "secrets" }, "take the identity of Lastcall's ServiceAccounts"],
    ...["serviceaccounts users", "users"].map((resources): [RuleText, string] => [
      { verbs: "impersonate", resources },
      "take the identity of Lastcall's ServiceAccounts",
    ]),
    [
      {
        verbs: "impersonate:serviceaccount",
        groups: "authentication.k8s.io",
        resources: "serviceaccounts",
      },
      "take the identity of Lastcall's ServiceAccounts",
    ],
    [
      { verbs: "impersonate:user-info", groups: "authentication.k8s.io", resources: "users" },
      "act as another user or node",
    ],
    [
      { verbs: "impersonate:arbitrary-node", groups: "authentication.k8s.io", resources: "nodes" },
      "act as another user or node",
    ],
    ...[undefined, [clientSigner], ["x.example/y", "kubernetes.io/*"]].map(
      (resourceNames): [RuleText, string] => [
        { ...approve, ...(resourceNames && { resourceNames }) },
        "approve certificates of any user",
      ],
    ),
    [{ verbs: "get", resources: "nodes/proxy" }, "run commands in any pod by its kubelet"],
    ...[
      "mutatingwebhookconfigurations.admissionregistration.k8s.io",
      "mutatingadmissionpolicies.admissionregistration.k8s.io",
      "customresourcedefinitions.apiextensions.k8s.io",
      "apiservices.apiregistration.k8s.io",
    ].map((name): [RuleText, string] => {
      const [resources = "", ...group] = name.split(".");
      return [{ verbs: "patch", groups: group.join("."), resources }, changesObjects];
    }),
    [
      {
        ...{ verbs: "update", groups: "apiextensions.k8s.io" },
        ...{ resources: "customresourcedefinitions", resourceNames: ["departures.lastcall.dev"] },
      },
      changesObjects,
    ],
    [
      { verbs: "bind", groups: "rbac.authorization.k8s.io", resources: "clusterroles" },
      "grant any right",
    ],
    [
      { verbs: "escalate", groups: "rbac.authorization.k8s.io", resources: "roles" },
      "grant any right",
    ],
  ])("is who has %j", (rule, right) => {
    expect(wide(rule)).toEqual([{ name: "User ann", right, isEverybody: false }]);
  });

  it.each([
    [{ verbs: "get list watch delete", resources: "nodes pods" }],
    [{ verbs: "create patch", resources: "events" }],
    [{ verbs: "create", groups: "lastcall.dev", resources: "departures", resourceNames: ["d"] }],
    [{ verbs: "patch", groups: "apps", resources: "nodes" }],
    [{ verbs: "impersonate:associated-node", groups: "authentication.k8s.io", resources: "nodes" }],
    [{ ...approve, resourceNames: ["kubernetes.io/kubelet-serving", "issuers.example/*"] }],
    [{ ...approve, verbs: "sign" }],
    [{ verbs: "create delete", groups: "apiextensions.k8s.io", resources: definitions }],
    [
      {
        ...{ verbs: "update", groups: "apiextensions.k8s.io", resources: definitions },
        resourceNames: ["certificates.cert-manager.io"],
      },
    ],
    [{ verbs: "patch", groups: "admissionregistration.k8s.io", resources: validating }],
    [{ verbs: "*", groups: "*", resources: "*" }],
  ])("is not who has only %j, or everything as an administrator", (rule) => {
    expect(wide(rule)).toEqual([]);
  });

  it.each([
    { kind: "Group", name: "system:masters" },
    { kind: "User", name: "system:kube-scheduler" },
    { kind: "User", name: "eks:node-manager" },
    { kind: "Group", name: "system:serviceaccounts:kube-system" },
    { kind: "ServiceAccount", namespace: "kube-system", name: "node-controller" },
    { kind: "ServiceAccount", namespace: "lastcall", name: "lastcall" },
    { kind: "User", name: "system:serviceaccount:kube-system:node-controller" },
    { kind: "User", name: "system:serviceaccount:lastcall:lastcall" },
    { kind: "Group", name: "system:bootstrappers:kubeadm:default-node-token" },
  ])("is not a part of Kubernetes, and not Lastcall: %j", (subject) => {
    expect(wide(nodes, subject)).toEqual([]);
  });

  it.each([
    [
      { kind: "ServiceAccount", namespace: "ops", name: "lastcall" },
      "ServiceAccount ops/lastcall",
      false,
    ],
    [
      { kind: "Group", name: "system:serviceaccounts:ops" },
      "Group system:serviceaccounts:ops",
      false,
    ],
    [
      { kind: "ServiceAccount", namespace: "kube-prometheus-stack", name: "bot" },
      "ServiceAccount kube-prometheus-stack/bot",
      false,
    ],
    [
      { kind: "Group", name: "system:serviceaccounts:kube-prometheus-stack" },
      "Group system:serviceaccounts:kube-prometheus-stack",
      false,
    ],
    [
      { kind: "User", name: "system:serviceaccount:team-a:ci" },
      "User system:serviceaccount:team-a:ci",
      false,
    ],
    [
      { kind: "Group", name: "system:bootstrappers:team-a" },
      "Group system:bootstrappers:team-a",
      false,
    ],
    [{ kind: "Group", name: "system:authenticated" }, "Group system:authenticated", true],
    [{ kind: "User", name: "system:anonymous" }, "User system:anonymous", true],
  ])("is %j", (subject, name, isEverybody) => {
    expect(wide(nodes, subject)).toEqual([{ name, right: "change nodes", isEverybody }]);
  });

  it("is everybody, even if everybody is an administrator", () => {
    const subject = { kind: "Group", name: "system:authenticated" };
    expect(wide({ verbs: "*", groups: "*", resources: "*" }, subject)).toHaveLength(1);
  });

  it.each([
    ["lastcall", { verbs: "create", resources: "pods" }, 1],
    ["shop", { verbs: "create", resources: "pods" }, 0],
    // Nodes are in no namespace.
    ["lastcall", nodes, 0],
    // An administrator of that namespace is none of the cluster.
    ["lastcall", { verbs: "*", groups: "*", resources: "*" }, 1],
    ["shop", { verbs: "*", groups: "*", resources: "*" }, 0],
  ])("depends on the namespace of a RoleBinding: %s, %j", (namespace, rule, count) => {
    for (const kind of ["Role", "ClusterRole"]) {
      const rbac = {
        clusterRoles: kind === "ClusterRole" ? [role("r", rule)] : [],
        roles: kind === "Role" ? [role("r", rule, namespace)] : [],
        clusterRoleBindings: [],
        roleBindings: [binding(kind, ann, namespace)],
      };
      expect(drainersIn(rbac, own)).toHaveLength(count);
    }
  });

  it.each([
    { verbs: "create", resources: "serviceaccounts/token" },
    { verbs: "patch", groups: "apps", resources: "daemonsets" },
    { verbs: "*", groups: "*", resources: "*" },
  ])("is who may act as a part of Kubernetes in its own namespace: %j", (rule) => {
    const bound = (subject: object) =>
      drainersIn(
        {
          ...{ clusterRoles: [role("r", rule)], roles: [], clusterRoleBindings: [] },
          roleBindings: [binding("ClusterRole", subject, "kube-system")],
        },
        own,
      );
    expect(bound(ann)).toEqual([
      { name: "User ann", right: "act as a part of Kubernetes in kube-system", isEverybody: false },
    ]);
    const part = { kind: "ServiceAccount", namespace: "kube-system", name: "addon-manager" };
    expect(bound(part)).toEqual([]);
  });

  it("is named once, everybody first", () => {
    const rbac = {
      ...{ clusterRoles: [role("r", nodes)], roles: [], roleBindings: [] },
      clusterRoleBindings: [
        ...[ann, ann, { kind: "Group", name: "system:authenticated" }].map((subject) =>
          binding("ClusterRole", subject),
        ),
      ],
    };
    expect(drainersIn(rbac, own).map(({ name }) => name)).toEqual([
      "Group system:authenticated",
      "User ann",
    ]);
  });
});
