import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { type Fields, fieldsOf } from "../../core/json/json-field.ts";
import type { ModelObject, ModelStore } from "./store/object-store.ts";
import type { StructuralSchema } from "./structural-schema.ts";

/**
 * Events are stored as core v1 and read as `events.k8s.io/v1` with other names for the same fields,
 * as the server converts them. Source: kubernetes `pkg/apis/events/v1/conversion.go`.
 */
const newNames: Readonly<Record<string, string>> = {
  involvedObject: "regarding",
  message: "note",
  reportingComponent: "reportingController",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
};

const oldNames: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(newNames).map(([before, after]) => [after, before]),
);

/** A stored object as clients of `type` read it. */
export function present(object: ModelObject, type: ResourceType): ModelObject {
  const apiVersion = apiVersionOf(type);
  if (object.apiVersion === apiVersion) return object;
  if (type.group !== "events.k8s.io") return Object.freeze({ ...object, apiVersion });
  return Object.freeze({ ...renamed(object, newNames), apiVersion }) as ModelObject;
}

/** An object that a client of `type` wrote, in its stored form. */
export function ingest(body: Fields, type: ResourceType): Fields {
  if (type.group !== "events.k8s.io") return body;
  return Object.freeze({ ...renamed(body, oldNames), apiVersion: "v1" });
}

function renamed(object: Fields, names: Readonly<Record<string, string>>): Fields {
  const entries = Object.entries(fieldsOf(object));
  return Object.fromEntries(entries.map(([field, value]) => [names[field] ?? field, value]));
}

/** One kind served in one group and version. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Types with one storage share their objects, whatever group and version they are read in. */
  readonly storage: string;
  readonly traits: ResourceTraits;
  /** Set for kinds that a CustomResourceDefinition serves. */
  readonly custom?: CustomResourceTraits | undefined;
}

/** How the server handles a kind, by its `strategy.go`. */
interface ResourceTraits {
  /** `/status` exists: writes to the object do not change its status, and the reverse. */
  readonly statusSubresource: boolean;
  /** The `status` in a create request is kept, as for Nodes, which kubelets register. */
  readonly statusOnCreate: boolean;
  /** `metadata.generation` counts the changes of the desired state. */
  readonly generation: boolean;
  /** PUT without a resourceVersion is accepted (`AllowUnconditionalUpdate`). */
  readonly unconditionalUpdate: boolean;
  /** PUT to a name that does not exist creates the object (`AllowCreateOnUpdate`). */
  readonly createOnUpdate: boolean;
  /** DELETE answers with the object, not with a Status (`ReturnDeletedObject`). */
  readonly returnsDeleted: boolean;
}

interface CustomResourceTraits {
  readonly schema: StructuralSchema;
  readonly printerColumns: readonly ResourceColumn[];
  readonly selectableFields: readonly string[];
}

export interface ResourceColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly description?: string;
  readonly priority?: number;
}

/** `v1`, `apps/v1`. */
export function apiVersionOf(type: Pick<ResourceType, "group" | "version">): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

const plain: ResourceTraits = {
  statusSubresource: false,
  statusOnCreate: false,
  generation: false,
  unconditionalUpdate: true,
  createOnUpdate: false,
  returnsDeleted: false,
};

const withStatus: ResourceTraits = { ...plain, statusSubresource: true };

const workload: ResourceTraits = { ...withStatus, generation: true };

interface BuiltIn {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames?: readonly string[];
  readonly cluster?: true;
  readonly all?: true;
  readonly traits: ResourceTraits;
  readonly storage?: string;
}

const core: readonly BuiltIn[] = [
  {
    kind: "Namespace",
    plural: "namespaces",
    shortNames: ["ns"],
    cluster: true,
    traits: { ...withStatus, returnsDeleted: true },
  },
  {
    kind: "Node",
    plural: "nodes",
    shortNames: ["no"],
    cluster: true,
    traits: { ...withStatus, statusOnCreate: true },
  },
  {
    kind: "Pod",
    plural: "pods",
    shortNames: ["po"],
    all: true,
    traits: { ...workload, returnsDeleted: true },
  },
  {
    kind: "Event",
    plural: "events",
    shortNames: ["ev"],
    traits: { ...plain, createOnUpdate: true },
    storage: "events",
  },
  {
    kind: "Service",
    plural: "services",
    shortNames: ["svc"],
    all: true,
    traits: { ...withStatus, createOnUpdate: true, returnsDeleted: true },
  },
  { kind: "ConfigMap", plural: "configmaps", shortNames: ["cm"], traits: plain },
  {
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    shortNames: ["sa"],
    traits: { ...plain, returnsDeleted: true },
  },
  { kind: "Secret", plural: "secrets", traits: plain },
  {
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    shortNames: ["pvc"],
    traits: { ...withStatus, returnsDeleted: true },
  },
  {
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    shortNames: ["pv"],
    cluster: true,
    traits: { ...withStatus, returnsDeleted: true },
  },
];

const apps: readonly BuiltIn[] = [
  {
    kind: "Deployment",
    plural: "deployments",
    shortNames: ["deploy"],
    all: true,
    traits: workload,
  },
  { kind: "ReplicaSet", plural: "replicasets", shortNames: ["rs"], all: true, traits: workload },
  { kind: "StatefulSet", plural: "statefulsets", shortNames: ["sts"], all: true, traits: workload },
  { kind: "DaemonSet", plural: "daemonsets", shortNames: ["ds"], all: true, traits: workload },
];

const conditional: ResourceTraits = { ...plain, unconditionalUpdate: false };

/**
 * The built-in kinds that the model serves. Source: the kinds' `strategy.go` in
 * kubernetes/kubernetes.
 */
const builtInTypes: readonly ResourceType[] = [
  ...core.map((entry) => builtIn("", entry)),
  ...apps.map((entry) => builtIn("apps", entry)),
  builtIn("batch", { kind: "Job", plural: "jobs", all: true, traits: workload }),
  builtIn("policy", {
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    shortNames: ["pdb"],
    traits: { ...workload, unconditionalUpdate: false },
  }),
  builtIn("coordination.k8s.io", {
    kind: "Lease",
    plural: "leases",
    traits: { ...conditional, createOnUpdate: true },
  }),
  builtIn("events.k8s.io", {
    kind: "Event",
    plural: "events",
    shortNames: ["ev"],
    traits: { ...plain, createOnUpdate: true },
    storage: "events",
  }),
  builtIn("scheduling.k8s.io", {
    kind: "PriorityClass",
    plural: "priorityclasses",
    shortNames: ["pc"],
    cluster: true,
    traits: plain,
  }),
  builtIn("storage.k8s.io", {
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    cluster: true,
    traits: withStatus,
  }),
  builtIn("apiextensions.k8s.io", {
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    shortNames: ["crd", "crds"],
    cluster: true,
    traits: { ...workload, unconditionalUpdate: false },
  }),
];

function builtIn(group: string, entry: BuiltIn): ResourceType {
  return Object.freeze({
    group,
    version: "v1",
    kind: entry.kind,
    plural: entry.plural,
    singular: entry.kind.toLowerCase(),
    shortNames: entry.shortNames ?? [],
    categories: entry.all ? ["all"] : [],
    namespaced: !entry.cluster,
    storage: entry.storage ?? (group === "" ? entry.plural : `${entry.plural}.${group}`),
    traits: entry.traits,
  });
}

/** The kinds that are served now; CustomResourceDefinitions add and remove them. */
export class ResourceRegistry {
  readonly #types = new Map<string, ResourceType>();

  constructor() {
    for (const type of builtInTypes) this.add(type);
  }

  add(type: ResourceType): void {
    this.#types.set(key(apiVersionOf(type), type.plural), type);
  }

  remove(type: ResourceType): void {
    this.#types.delete(key(apiVersionOf(type), type.plural));
  }

  find(apiVersion: string, plural: string): ResourceType | undefined {
    return this.#types.get(key(apiVersion, plural));
  }

  findKind(apiVersion: string, kind: string): ResourceType | undefined {
    return this.all().find((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
  }

  /** In the order in which they were added. */
  all(): readonly ResourceType[] {
    return [...this.#types.values()];
  }
}

function key(apiVersion: string, plural: string): string {
  return `${apiVersion}|${plural}`;
}

/** What every part of the model API needs. */
export interface ApiContext {
  readonly store: ModelStore;
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** A random UUID of version 4. */
export function randomUid(context: Pick<ApiContext, "rng">): string {
  const words = [0, 1, 2, 3].map(() => Math.floor(context.rng() * 4_294_967_296));
  const hex = words.map((word) => word.toString(16).padStart(8, "0")).join("");
  const variant = "89ab"[Number.parseInt(hex[16] ?? "0", 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** The letters of generated names: no vowels, so that no words come out, and neither 0, 1 nor 3. */
const nameLetters = "bcdfghjklmnpqrstvwxz2456789";

/** `web-` becomes `web-x7k2p`. Source: apiserver `pkg/storage/names/generate.go`. */
export function generatedName(context: Pick<ApiContext, "rng">, base: string): string {
  let name = base.slice(0, 58);
  for (let letter = 0; letter < 5; letter += 1) {
    name += nameLetters[Math.floor(context.rng() * nameLetters.length)];
  }
  return name;
}

/** A parsed path below `/api` or `/apis`; `name` is absent for a collection. */
export interface ResourcePath {
  /** `v1` or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** Parses a request path; undefined if it names no resource. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const parts = path.split("/");
  if (parts[1] === "api" && parts.length > 3) return withResource(parts[2] ?? "", parts.slice(3));
  if (parts[1] !== "apis" || parts.length <= 4) return undefined;
  return withResource(`${parts[2]}/${parts[3]}`, parts.slice(4));
}

/** `namespaces/x/pods` is namespaced; `namespaces/x` and `namespaces/x/status` are not. */
function withResource(apiVersion: string, rest: string[]): ResourcePath | undefined {
  if (rest[0] === "namespaces" && rest.length > 2 && !isNamespaceSubresource(rest[2])) {
    return withName({ apiVersion, namespace: decode(rest[1]), rest: rest.slice(2) });
  }
  return withName({ apiVersion, namespace: undefined, rest });
}

function isNamespaceSubresource(segment: string | undefined): boolean {
  return segment === "status" || segment === "finalize";
}

function withName(parts: {
  apiVersion: string;
  namespace: string | undefined;
  rest: string[];
}): ResourcePath | undefined {
  const [plural, name, subresource, ...beyond] = parts.rest;
  if (plural === undefined || plural === "" || beyond.length > 0) return undefined;
  return {
    apiVersion: parts.apiVersion,
    namespace: parts.namespace,
    plural,
    name: name === undefined || name === "" ? undefined : decode(name),
    subresource,
  };
}

function decode(segment: string | undefined): string {
  return segment?.includes("%") ? decodeURIComponent(segment) : (segment ?? "");
}
