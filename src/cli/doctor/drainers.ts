import type { KubeObject } from "../../contracts/kube-api.ts";
import { fieldsOf, listOf, textOf } from "../../core/json/json-field.ts";
import {
  actAsSystem,
  type Drainer,
  type DrainRight,
  drainRights,
} from "../../doctor/drain-rights.ts";

/** All of RBAC. The objects of lists have no kind, so they are kept apart. */
export interface RbacObjects {
  readonly clusterRoles: readonly KubeObject[];
  readonly clusterRoleBindings: readonly KubeObject[];
  readonly roles: readonly KubeObject[];
  readonly roleBindings: readonly KubeObject[];
}

interface Own {
  /** The namespace of the installation. */
  readonly namespace: string;
  /** Each ServiceAccount of Lastcall as `namespace/name`. */
  readonly accounts: ReadonlySet<string>;
}

interface RoleRule {
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  readonly resources: readonly string[];
  /** The only objects to which it applies; empty: all. */
  readonly names: readonly string[];
}

/** A role as it is bound: everywhere, in the namespace of the installation, or in kube-system. */
interface Grant {
  readonly subjects: readonly unknown[];
  readonly rules: readonly RoleRule[];
  readonly where: "Cluster" | "Own" | "System";
}

/** Controllers of Kubernetes have ServiceAccounts in it that may do what Lastcall may. */
const systemNamespace = "kube-system";

/**
 * Who has a right by which a node can be made to leave, apart from administrators, the parts of
 * Kubernetes and Lastcall itself.
 */
export function drainersIn(rbac: RbacObjects, own: Own): readonly Drainer[] {
  const found = new Map<string, Drainer>();
  for (const { subjects, rules, where } of grantsOf(rbac, own.namespace)) {
    const isWide = where === "Cluster";
    const right = drainRights.find(
      (one) => (isWide || one.own === true) && rules.some((rule) => gives(rule, one)),
    );
    if (right === undefined) continue;
    // An administrator of the namespace alone is one of the others.
    const isAdmin = isWide && rules.some(isEverything);
    for (const subject of subjects.map(subjectOf)) {
      const isKept = subject.isEverybody || !(isAdmin || isOfSystem(subject, own));
      if (!isKept || found.has(subject.name)) continue;
      const name = where === "System" ? actAsSystem : right.name;
      found.set(subject.name, { ...subject, right: name });
    }
  }
  const drainers = [...found.values()].map(({ name, right, isEverybody }) => ({
    ...{ name, right, isEverybody },
  }));
  return drainers.toSorted((a, b) => Number(b.isEverybody) - Number(a.isEverybody));
}

function grantsOf(rbac: RbacObjects, namespace: string): readonly Grant[] {
  const rulesByName = (roles: readonly KubeObject[]) =>
    new Map(roles.map((role) => [role.metadata?.name, listOf(role.rules).map(ruleOf)]));
  const wide = rulesByName(rbac.clusterRoles);
  const grantOf = (binding: KubeObject, roles: typeof wide, where: Grant["where"]): Grant => {
    const { kind, name } = fieldsOf(binding.roleRef);
    const rules = (kind === "Role" ? roles : wide).get(textOf(name)) ?? [];
    return { subjects: listOf(binding.subjects), rules, where };
  };
  const grantsIn = (place: string, where: Grant["where"]) => {
    const inside = ({ metadata }: KubeObject) => metadata?.namespace === place;
    const local = rulesByName(rbac.roles.filter(inside));
    return rbac.roleBindings.filter(inside).map((one) => grantOf(one, local, where));
  };
  return [
    ...rbac.clusterRoleBindings.map((one) => grantOf(one, wide, "Cluster")),
    ...grantsIn(namespace, "Own"),
    ...grantsIn(systemNamespace, "System"),
  ];
}

function ruleOf(rule: unknown): RoleRule {
  const { verbs, apiGroups, resources, resourceNames } = fieldsOf(rule);
  const texts = (list: unknown) => listOf(list).flatMap((one) => textOf(one) ?? []);
  return {
    ...{ verbs: texts(verbs), groups: texts(apiGroups), resources: texts(resources) },
    names: texts(resourceNames),
  };
}

/** A rule for objects by name grants no creation: the name is not known then. */
function gives({ verbs, groups, resources, names }: RoleRule, right: DrainRight): boolean {
  if (!groups.some((group) => group === "*" || group === right.group)) return false;
  const isLimited = names.length > 0;
  if (isLimited && right.names?.some((name) => names.includes(name)) === false) return false;
  const [, subresource] = right.resource.split("/");
  const wildcards = ["*", ...(subresource === undefined ? [] : [`*/${subresource}`])];
  if (!resources.some((one) => one === right.resource || wildcards.includes(one))) return false;
  return right.verbs.some(
    (verb) => !(isLimited && verb === "create") && verbs.some((one) => one === "*" || one === verb),
  );
}

function isEverything({ verbs, groups, resources, names }: RoleRule): boolean {
  return names.length === 0 && [verbs, groups, resources].every((list) => list.includes("*"));
}

interface RoleSubject {
  /** Such as `ServiceAccount ops/deployer`. */
  readonly name: string;
  readonly isEverybody: boolean;
  readonly kind: string;
  readonly plain: string;
  readonly namespace: string | undefined;
}

const everybody = /^system:(authenticated|unauthenticated|anonymous|serviceaccounts)$/;

function subjectOf(subject: unknown): RoleSubject {
  const { kind, name, namespace } = fieldsOf(subject);
  const [kindText, plain, place] = [textOf(kind) ?? "", textOf(name) ?? "", textOf(namespace)];
  const full = place === undefined ? plain : `${place}/${plain}`;
  return {
    ...{ name: `${kindText} ${full}`, kind: kindText, plain, namespace: place },
    isEverybody: kindText !== "ServiceAccount" && everybody.test(plain),
  };
}

/**
 * Kubernetes' own components, and those of EKS, which are users called `eks:…`. The accounts of
 * any other namespace, as a group, are none of them.
 */
function isOfSystem({ kind, plain, namespace = "" }: RoleSubject, own: Own): boolean {
  // RBAC may name a ServiceAccount as the user that it authenticates as, too.
  const [, place, account] = /^system:serviceaccount:([^:]+):(.+)$/.exec(plain) ?? [];
  if (kind === "ServiceAccount" || account !== undefined) {
    const [ns, name] = [place ?? namespace, account ?? plain];
    return systemNamespaces.has(ns) || own.accounts.has(`${ns}/${name}`);
  }
  const [, group] = /^system:serviceaccounts:(.+)$/.exec(plain) ?? [];
  if (group !== undefined) return systemNamespaces.has(group);
  const [, bootstrappers] = /^system:bootstrappers:(.+)$/.exec(plain) ?? [];
  if (bootstrappers !== undefined) return bootstrappers.startsWith("kubeadm:");
  return /^(eks|system):/.test(plain);
}

/** Of Kubernetes itself; others that begin with `kube-` are anybody's. */
const systemNamespaces = new Set([systemNamespace, "kube-public", "kube-node-lease"]);
