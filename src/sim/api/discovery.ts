import type { KubeAnswer, KubeRequest } from "../../contracts/kube-api.ts";
import { fieldsOf } from "../../core/json/json-field.ts";
import { isScalable } from "./resource-handler.ts";
import { apiVersionOf, type ResourceRegistry, type ResourceType } from "./resource-registry.ts";

/** The version whose behaviour the model follows. */
const modelVersion = Object.freeze({
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

/**
 * `/version`, `/api`, `/apis`, `/api/v1`, `/apis/GROUP[/VERSION]`, health; undefined for other
 * paths.
 */
export function discover(registry: ResourceRegistry, path: string): KubeAnswer | undefined {
  // Longer paths are resources; most requests are, and should not pay for these checks.
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

/** Kinds that are served for one verb only, and therefore have no ResourceType. */
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

/**
 * `/openapi/v2`, which old and some newer parts of kubectl request as protobuf: a document that
 * holds only its version (field 1, the text `2.0`), so that kubectl validates nothing itself.
 */
export const openApiV2 = Object.freeze({
  contentType: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
  body: "\n\u00032.0",
});

/**
 * As much of `/openapi/v3` as kubectl needs to see that the server validates fields itself, and for
 * `kubectl explain` of Lastcall's kinds; undefined for other paths.
 */
export function openApi(registry: ResourceRegistry, path: string): object | undefined {
  if (path === "/openapi/v3") return { paths: pathsOf(registry) };
  if (!path.startsWith("/openapi/v3/")) return undefined;
  const groupVersion = path.slice("/openapi/v3/".length);
  const types = registry.all().filter((type) => documentOf(type) === groupVersion);
  if (types.length === 0) return undefined;
  return {
    openapi: "3.0.0",
    info: { title: "Lastcall model cluster", version: "v1" },
    paths: Object.fromEntries(types.map((type) => [pathOf(type), operationOf(type)])),
    components: {
      schemas: Object.fromEntries(types.map((type) => [nameOf(type), schemaOf(type)])),
    },
  };
}

function pathsOf(registry: ResourceRegistry): Readonly<Record<string, object>> {
  const documents = new Set(registry.all().map(documentOf));
  return Object.fromEntries(
    [...documents].map((one) => [one, { serverRelativeURL: `/openapi/v3/${one}` }]),
  );
}

function documentOf(type: ResourceType): string {
  return type.group === "" ? `api/${type.version}` : `apis/${apiVersionOf(type)}`;
}

function pathOf(type: ResourceType): string {
  const scope = type.namespaced ? "/namespaces/{namespace}" : "";
  return `/${documentOf(type)}${scope}/${type.plural}/{name}`;
}

function nameOf({ group, version, kind }: ResourceType): string {
  const reversed = group.split(".").toReversed().join(".");
  return [reversed, version, kind].filter((part) => part !== "").join(".");
}

/** The model has no schemas of the built-in kinds, and says so to explain. */
function schemaOf(type: ResourceType): object {
  const { group, version, kind } = type;
  const gvks = { "x-kubernetes-group-version-kind": [{ group, version, kind }] };
  const description = `The model cluster has no schema of ${kind}; ask a real cluster for its fields.`;
  if (type.custom === undefined) return { type: "object", description, ...gvks };
  const { properties } = type.custom.schema;
  const own = { apiVersion: text, kind: text, metadata: anyObject };
  return { ...type.custom.schema, properties: { ...properties, ...own }, ...gvks };
}

const text = { type: "string", description: "As in every Kubernetes object." };
const anyObject = { type: "object", description: "As in every Kubernetes object." };

function operationOf(type: ResourceType): object {
  const { group, version, kind } = type;
  const parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map((name) => ({
    name,
    in: "query",
    schema: { type: "string" },
  }));
  const responses = { 200: { description: "OK" } };
  const gvk = { "x-kubernetes-group-version-kind": { group, version, kind } };
  return { patch: { parameters, responses, ...gvk } };
}

/** In the model everybody may do everything, except act as somebody else: it has no users. */
const reviews: Readonly<Record<string, { readonly kind: string; readonly status: object }>> = {
  [`/apis/${accessReviewVersion}/subjectaccessreviews`]: {
    kind: "SubjectAccessReview",
    status: { allowed: true },
  },
  [`/apis/${accessReviewVersion}/selfsubjectaccessreviews`]: {
    kind: "SelfSubjectAccessReview",
    status: { allowed: true },
  },
  [`/apis/${accessReviewVersion}/selfsubjectrulesreviews`]: {
    kind: "SelfSubjectRulesReview",
    status: {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    },
  },
};

/** The review that `kubectl auth can-i` sends; undefined for any other request. */
export function answerReview({ method, path, body }: KubeRequest): KubeAnswer | undefined {
  const review = method === "POST" ? reviews[path] : undefined;
  if (review === undefined) return undefined;
  const { kind } = review;
  const { spec } = fieldsOf(body);
  const { verb } = fieldsOf(fieldsOf(spec).resourceAttributes);
  const status = verb === "impersonate" ? { allowed: false } : review.status;
  return {
    status: 201,
    body: { kind, apiVersion: accessReviewVersion, metadata: {}, spec, status },
  };
}
