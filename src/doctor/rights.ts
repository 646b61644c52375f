import { gangObjectKinds } from "../core/cluster/gang-object.ts";

/** A permission, in the terms of RBAC. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string | undefined;
  /** Only in the controller's own namespace. Default: in the whole cluster. */
  readonly own?: boolean;
  readonly name?: string | undefined;
}

function rights(verbs: string, resources: string, group = ""): readonly Right[] {
  return resources.split(" ").flatMap((one) => {
    const [resource = "", subresource] = one.split("/");
    return verbs.split(" ").map((verb) => ({ verb, group, resource, subresource }));
  });
}

/** The permissions that the controller needs; a test compares them with deploy/base/rbac.yaml. */
export const controllerRights: readonly Right[] = [
  ...rights("get list watch patch delete", "nodes"),
  ...rights("patch", "nodes/status"),
  ...rights("list watch delete", "pods"),
  ...rights("create", "pods/eviction"),
  ...rights("patch", "pods/status"),
  ...rights("get", "persistentvolumeclaims persistentvolumes"),
  ...rights("list watch", "volumeattachments", "storage.k8s.io"),
  ...rights("list", "poddisruptionbudgets", "policy"),
  ...rights("create patch", "events"),
  ...rights("get list watch", "departurepolicies", "lastcall.dev"),
  ...rights("get list delete", "nodeclaims", "karpenter.sh"),
  ...gangObjectKinds.flatMap(({ group, resource }) => rights("get", resource, group)),
  ...rights("get list watch create patch delete", "departures", "lastcall.dev"),
  ...rights("patch", "departures/status departurepolicies/status", "lastcall.dev"),
  { verb: "create", group: "coordination.k8s.io", resource: "leases", own: true },
  ...["get", "list", "watch", "update"].map((verb) => ({
    verb,
    group: "coordination.k8s.io",
    resource: "leases",
    own: true,
    name: "lastcall",
  })),
  { verb: "create", group: "", resource: "pods", own: true },
];

/** In addition, for a policy with RestartOwner: deploy/restart-owner/rbac.yaml. */
export const restartRights: readonly Right[] = [
  ...rights("get", "replicasets", "apps"),
  ...rights("patch", "deployments statefulsets", "apps"),
];

/** The permissions that an agent needs; a test compares them with deploy/agent/rbac.yaml. */
export const agentRights: readonly Right[] = rights(
  "create get patch",
  "departures",
  "lastcall.dev",
);

const cordonRights: readonly Right[] = [
  ...rights("get patch", "nodes"),
  ...rights("patch", "nodes/status"),
  { verb: "get", group: "coordination.k8s.io", resource: "leases", own: true, name: "lastcall" },
];

/** In addition, by the value of `--fallback`: deploy/agent-fallback. */
export const fallbackRights: Readonly<Record<string, readonly Right[]>> = {
  Cordon: cordonRights,
  Drain: [...cordonRights, ...rights("list delete", "pods"), ...rights("create", "pods/eviction")],
};

/**
 * In the notation of kubectl auth can-i: `patch nodes/status`, `get leases.coordination.k8s.io`.
 */
export function rightName({ verb, group, resource, subresource }: Right): string {
  const full = group === "" ? resource : `${resource}.${group}`;
  return `${verb} ${full}${subresource === undefined ? "" : `/${subresource}`}`;
}
