import type { KubeAnswer } from "../../contracts/kube-api.ts";
import type { ResourceRegistry } from "./resource-registry.ts";
import { apiVersionOf, type ResourceType } from "./resource-type.ts";
import { isScalable } from "./scale-object.ts";

/** The version that the model behaves like. */
export const modelVersion = Object.freeze({
  major: "1",
  minor: "36",
  gitVersion: "v1.36.3+lastcall-model",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "linux/amd64",
});

/** `/version`, `/api`, `/apis`, `/api/v1`, `/apis/GROUP[/VERSION]`, health; undefined for other paths. */
export function discover(registry: ResourceRegistry, path: string): KubeAnswer | undefined {
  // Longer paths are resources; most requests are, and shall not pay for this.
  if (segmentCount(path) > 3) return undefined;
  const parts = path.split("/").filter((part) => part !== "");
  const [first, second, third] = parts;
  if (path === "/version") return ok(modelVersion);
  if (first === "healthz" || first === "readyz" || first === "livez") return ok("ok");
  if (first === "api" && parts.length === 1) return ok(coreVersions);
  if (first === "api" && parts.length === 2) return resources(registry, second ?? "");
  if (first !== "apis" || parts.length > 3) return undefined;
  if (second === undefined) return ok(groupList(registry));
  if (third === undefined) return group(registry, second);
  return resources(registry, `${second}/${third}`);
}

function segmentCount(path: string): number {
  let count = 0;
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) count += 1;
  return count;
}

function ok(body: unknown): KubeAnswer {
  return { status: 200, body };
}

const coreVersions = Object.freeze({
  kind: "APIVersions",
  versions: ["v1"],
  serverAddressByClientCIDRs: [],
});

/** Served for one verb only, so no ResourceType stands behind them. */
const accessReviews = Object.freeze(
  ["SelfSubjectAccessReview", "SelfSubjectRulesReview"].map((kind) => ({
    name: `${kind.toLowerCase()}s`,
    singularName: kind.toLowerCase(),
    namespaced: false,
    kind,
    verbs: ["create"],
  })),
);
const accessReviewVersion = "authorization.k8s.io/v1";

function groupList(registry: ResourceRegistry): object {
  const names = new Set(registry.all().map((type) => type.group));
  names.delete("");
  names.add("authorization.k8s.io");
  const groups = [...names].map((name) => groupOf(registry, name));
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

function group(registry: ResourceRegistry, name: string): KubeAnswer | undefined {
  const found = groupOf(registry, name);
  if (found.versions.length === 0) return undefined;
  return ok({ kind: "APIGroup", apiVersion: "v1", ...found });
}

function groupOf(
  registry: ResourceRegistry,
  name: string,
): { name: string; versions: readonly object[]; preferredVersion: object | undefined } {
  const served = registry.all().filter((type) => type.group === name);
  const own = name === "authorization.k8s.io" ? ["v1"] : [];
  const versions = [...new Set([...served.map((type) => type.version), ...own])].map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

function resources(registry: ResourceRegistry, groupVersion: string): KubeAnswer | undefined {
  const served = registry.all().filter((type) => apiVersionOf(type) === groupVersion);
  const own = groupVersion === accessReviewVersion ? accessReviews : [];
  if (served.length === 0 && own.length === 0) return undefined;
  const list = [...served.flatMap(describe), ...own];
  return ok({ kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: list });
}

const verbs = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
] as const;

function describe(type: ResourceType): readonly object[] {
  const { namespaced, kind } = type;
  const main = {
    name: type.plural,
    singularName: type.singular,
    namespaced,
    kind,
    verbs,
    shortNames: type.shortNames,
    categories: type.categories,
  };
  const sub = (name: string): object => ({
    name: `${type.plural}/${name}`,
    singularName: "",
    namespaced,
    kind,
    verbs: ["get", "patch", "update"],
  });
  const status = type.traits.statusSubresource ? [sub("status")] : [];
  const extra = type.storage === "pods" ? [eviction] : [];
  const scale = isScalable(type) ? [{ ...sub("scale"), ...scaleKind }] : [];
  return [main, ...status, ...scale, ...extra];
}

const scaleKind = { group: "autoscaling", version: "v1", kind: "Scale" };

const eviction = {
  name: "pods/eviction",
  singularName: "",
  namespaced: true,
  group: "policy",
  version: "v1",
  kind: "Eviction",
  verbs: ["create"],
};
