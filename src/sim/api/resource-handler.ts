import type { KubeAnswer, KubeRequest, PatchType } from "../../contracts/kube-api.ts";
import type { LabelSelector } from "../../core/cluster/pod.ts";
import { type Fields, fieldsOf } from "../../core/json/json-field.ts";
import {
  badRequest,
  invalid,
  methodNotAllowed,
  noSuchResource,
  notFound,
  unsupportedMediaType,
} from "./api-refusal.ts";
import {
  type ApiContext,
  ingest,
  present,
  type ResourcePath,
  type ResourceType,
} from "./resource-registry.ts";
import { type ObjectLister, type Query, selectObjects } from "./store/list-objects.ts";
import { frozenCopy, frozenCopyWithoutNulls, type ModelObject } from "./store/object-store.ts";
import { deleteObject, deleteOptionsOf, evictPod, isDryRun } from "./write/delete-object.ts";
import { patches } from "./write/patch.ts";
import { createObject, type Update, updateObject } from "./write/write-object.ts";

/** A request to a served kind. */
interface ResourceRequest {
  readonly context: ApiContext;
  readonly lister: ObjectLister;
  readonly request: KubeRequest;
  readonly type: ResourceType;
  readonly path: ResourcePath;
}

/** Answers a request; throws `ApiRefusal` for every failure. */
export function handleResource(at: ResourceRequest): KubeAnswer {
  checkScope(at);
  if (at.path.name === undefined) return handleCollection(at);
  if (at.path.subresource !== undefined) return handleSubresource(at);
  switch (at.request.method) {
    case "GET":
      return answer(at, mustGet(at));
    case "PUT":
      return put(at, "Object");
    case "PATCH":
      return patch(at, "Object");
    case "DELETE":
      return remove(at);
    case "POST":
      throw methodNotAllowed();
  }
}

function handleCollection(at: ResourceRequest): KubeAnswer {
  switch (at.request.method) {
    case "GET":
      return { status: 200, body: at.lister.list(scopeOf(at)) };
    case "POST":
      return create(at);
    case "DELETE":
      return removeAll(at);
    case "PUT":
    case "PATCH":
      throw methodNotAllowed();
  }
}

function handleSubresource(at: ResourceRequest): KubeAnswer {
  const { subresource } = at.path;
  const { method } = at.request;
  if (subresource === "eviction" && at.type.storage === "pods") {
    if (method !== "POST") throw methodNotAllowed();
    const asked = { ...placeOf(at), body: at.request.body, query: queryOf(at) };
    return { status: 201, body: evictPod(at.context, asked) };
  }
  if (subresource === "scale" && isScalable(at.type)) return scale(at);
  if (subresource !== "status" || !at.type.traits.statusSubresource) throw noSuchResource();
  if (method === "GET") return answer(at, mustGet(at));
  if (method === "PUT") return put(at, "Status");
  if (method === "PATCH") return patch(at, "Status");
  throw methodNotAllowed();
}

/**
 * Objects of namespaced kinds are written and read by name inside a namespace only, those of
 * cluster-scoped kinds outside.
 */
function checkScope({ type, path, request }: ResourceRequest): void {
  if (!type.namespaced && path.namespace !== undefined) throw noSuchResource();
  if (!type.namespaced || path.namespace !== undefined) return;
  if (path.name !== undefined || request.method === "DELETE") throw noSuchResource();
  if (request.method === "POST") throw methodNotAllowed();
}

function queryOf({ request }: ResourceRequest): Query {
  return request.query ?? {};
}

function scopeOf(at: ResourceRequest): {
  type: ResourceType;
  namespace: string | undefined;
  query: Query;
} {
  return { type: at.type, namespace: at.path.namespace, query: queryOf(at) };
}

function placeOf({ type, path }: ResourceRequest): {
  type: ResourceType;
  namespace: string;
  name: string;
} {
  return { type, namespace: path.namespace ?? "", name: path.name ?? "" };
}

function mustGet(at: ResourceRequest): ModelObject {
  const { type, namespace, name } = placeOf(at);
  const object = at.context.store.collection(type.storage).get(namespace, name);
  if (!object) throw notFound({ type, name });
  return object;
}

function answer(at: ResourceRequest, object: ModelObject, status = 200): KubeAnswer {
  return { status, body: present(object, at.type) };
}

function create(at: ResourceRequest): KubeAnswer {
  const object = createObject(at.context, {
    type: storedType(at),
    namespace: at.path.namespace ?? "",
    body: bodyOf(at),
    ...writeOptions(at),
  });
  return answer(at, object, 201);
}

/** Events are stored as core v1, whichever of their two groups they were written with. */
function storedType({ context, type }: ResourceRequest): ResourceType {
  if (type.group !== "events.k8s.io") return type;
  return context.registry.find("v1", "events") ?? type;
}

/** A Kubernetes body that is not a JSON object is refused before anything reads it. */
function bodyOf({ request, type }: ResourceRequest): Fields {
  const { body } = request;
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw badRequest("the object provided is unrecognized (must be of type object)");
  }
  return ingest(body as Fields, type);
}

function writeOptions(at: ResourceRequest): { dryRun: boolean; strictFields: boolean } {
  const query = queryOf(at);
  return { dryRun: isDryRun({}, query), strictFields: query.fieldValidation === "Strict" };
}

function put(at: ResourceRequest, part: Update["part"]): KubeAnswer {
  const body = frozenCopyWithoutNulls(bodyOf(at));
  const place = placeOf(at);
  const exists = at.context.store.collection(at.type.storage).get(place.namespace, place.name);
  if (!exists && at.type.traits.createOnUpdate && part === "Object") {
    return answer(
      at,
      createObject(at.context, { ...place, type: storedType(at), body, ...writeOptions(at) }),
      201,
    );
  }
  const change = (): unknown => body;
  return answer(
    at,
    updateObject(at.context, { ...place, part, by: "Put", change, ...writeOptions(at) }),
  );
}

function patch(at: ResourceRequest, part: Update["part"]): KubeAnswer {
  const { request, context, type } = at;
  const place = placeOf(at);
  const patchType = request.patchType ?? "application/merge-patch+json";
  checkPatch(at, patchType);
  const body = frozenCopy(request.body);
  const exists = context.store.collection(type.storage).get(place.namespace, place.name);
  if (!exists && patchType === "application/apply-patch+yaml" && part === "Object") {
    return answer(
      at,
      createObject(context, { ...place, type: storedType(at), body, ...writeOptions(at) }),
      201,
    );
  }
  const change = (current: ModelObject): unknown => ingest(patched(at, current, body), type);
  return answer(
    at,
    updateObject(context, { ...place, part, by: "Patch", change, ...writeOptions(at) }),
  );
}

function scale(at: ResourceRequest): KubeAnswer {
  const { context, request } = at;
  const place = placeOf(at);
  switch (request.method) {
    case "GET":
      return { status: 200, body: readScale(context, place) };
    case "PUT":
      return { status: 200, body: writeScale(context, { ...place, change: () => request.body }) };
    case "PATCH": {
      const apply = patches[request.patchType ?? "application/merge-patch+json"];
      const change = (current: object): unknown => apply(current, request.body);
      return { status: 200, body: writeScale(context, { ...place, change }) };
    }
    case "POST":
    case "DELETE":
      throw methodNotAllowed();
  }
}

function patched(at: ResourceRequest, current: ModelObject, body: unknown): Fields {
  const shown = present(current, at.type);
  const patchType = at.request.patchType ?? "application/merge-patch+json";
  const result = fieldsOf(patches[patchType](shown, body));
  return Object.isFrozen(result) ? result : frozenCopy(result);
}

const customPatchTypes = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/apply-patch+yaml",
  "application/apply-patch+cbor",
];

function checkPatch(at: ResourceRequest, patchType: PatchType): void {
  if (at.type.custom && patchType === "application/strategic-merge-patch+json") {
    throw unsupportedMediaType(customPatchTypes);
  }
  if (patchType !== "application/apply-patch+yaml") return;
  if (queryOf(at).fieldManager) return;
  const target = { type: { group: "meta.k8s.io", plural: "", kind: "PatchOptions" }, name: "" };
  const message = "Required value: is required for apply patch";
  throw invalid(target, [{ reason: "FieldValueRequired", message, field: "fieldManager" }]);
}

function remove(at: ResourceRequest): KubeAnswer {
  const options = deleteOptionsOf(at.request.body, queryOf(at));
  const { object, gone } = deleteObject(at.context, { ...placeOf(at), options });
  if (!gone || at.type.traits.returnsDeleted) return answer(at, object);
  const { group, plural } = at.type;
  const { name, uid } = object.metadata;
  const details = { name, ...(group === "" ? {} : { group }), kind: plural, uid };
  const body = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
  return { status: 200, body };
}

function removeAll(at: ResourceRequest): KubeAnswer {
  const options = deleteOptionsOf(at.request.body, queryOf(at));
  const list = at.lister.list({ ...scopeOf(at), query: { ...queryOf(at), limit: "0" } });
  for (const object of selectObjects(at.context, scopeOf(at))) {
    const { name, namespace = "" } = object.metadata;
    deleteObject(at.context, { type: at.type, namespace, name, options });
  }
  return { status: 200, body: list };
}

const scalable = new Set(["deployments.apps", "replicasets.apps", "statefulsets.apps"]);

export function isScalable(type: ResourceType): boolean {
  return scalable.has(type.storage);
}

interface ScaleTarget {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
}

/** The `Scale` of a workload: the desired number of replicas, and the current one. */
function readScale(context: ApiContext, { type, namespace, name }: ScaleTarget): object {
  const object = context.store.collection(type.storage).get(namespace, name);
  if (!object) throw notFound({ type, name });
  return scaleOf(object);
}

/** Changes the desired number of replicas; `change` maps the current Scale to the next. */
function writeScale(
  context: ApiContext,
  target: ScaleTarget & { readonly change: (scale: object) => unknown },
): object {
  const { change, ...place } = target;
  const toReplicas = (current: ModelObject): unknown => {
    const replicas = fieldsOf(fieldsOf(change(scaleOf(current))).spec).replicas ?? 0;
    if (!Number.isInteger(replicas)) throw badRequest("spec.replicas of a Scale is an integer");
    return { ...current, spec: { ...fieldsOf(current.spec), replicas } };
  };
  return scaleOf(
    updateObject(context, { ...place, part: "Object", by: "Patch", change: toReplicas }),
  );
}

function scaleOf(object: ModelObject): object {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const spec = fieldsOf(object.spec);
  const labels = (spec.selector as LabelSelector | undefined)?.matchLabels ?? {};
  const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    // autoscaling/v1 omits a desired number of zero (`omitempty`), but not a current one.
    spec: spec.replicas ? { replicas: spec.replicas } : {},
    status: {
      replicas: fieldsOf(object.status).replicas ?? 0,
      selector: selector.join(","),
    },
  };
}
