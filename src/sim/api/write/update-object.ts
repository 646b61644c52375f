import type { LabelSelector } from "../../../core/cluster/placement.ts";
import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import type { ApiContext } from "../api-context.ts";
import { badRequest, conflict, invalid, notFound, staleWrite } from "../api-refusal.ts";
import type { ResourceType } from "../resource-registry.ts";
import { jsonEqual, type ModelMeta, type ModelObject } from "../store/model-object.ts";
import { rulesOf } from "./admission.ts";
import { withSchema } from "./create-object.ts";

export interface Update {
  readonly type: ResourceType;
  readonly namespace: string;
  readonly name: string;
  /** What is written: the object without its status, or the status alone. */
  readonly part: "Object" | "Status";
  /** PUT sends the whole object and may need its version; a patch names the changes. */
  readonly by: "Put" | "Patch";
  /** From the current object to the desired one. */
  readonly change: (current: ModelObject) => unknown;
  readonly dryRun?: boolean;
  readonly strictFields?: boolean;
}

/**
 * Updates an object as the server would; returns what is then stored. A change without an effect
 * writes nothing. Throws `ApiRefusal`.
 */
export function updateObject(context: ApiContext, update: Update): ModelObject {
  const { type, namespace, name } = update;
  const collection = context.store.collection(type.storage);
  const current = collection.get(namespace, name);
  if (!current) throw notFound({ type, name });
  const wanted = update.change(current);
  if (!isFields(wanted)) throw badRequest("the object provided is unrecognized");
  checkIdentity(wanted, { current, update });
  checkVersion(wanted, { current, update });
  const next = compose(wanted, { current, update });
  const causes = rulesOf(type.storage).updateCauses?.(current, next) ?? [];
  if (causes.length > 0) throw invalid({ type, name }, causes);
  if (jsonEqual(next, current)) return current;
  if (update.dryRun) return next;
  const stored = collection.put(next);
  if (isFinallyGone(stored)) collection.remove(stored);
  return stored;
}

interface Against {
  readonly current: ModelObject;
  readonly update: Update;
}

function checkIdentity(wanted: Fields, { current, update }: Against): void {
  const { type, name } = update;
  const metadata = fieldsOf(wanted.metadata);
  const namedAs = metadata.name ?? "";
  if (namedAs !== name && (namedAs !== "" || update.by === "Put")) {
    throw badRequest(
      `the name of the object (${namedAs}) does not match the name on the URL (${name})`,
    );
  }
  const uid = metadata.uid;
  if (uid === undefined || uid === "" || uid === current.metadata.uid) return;
  if (update.by === "Put") {
    const key = `/registry/${type.plural}/${update.namespace}/${name}`.replace("//", "/");
    throw conflict(
      { type, name },
      `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`,
    );
  }
  const message = `Invalid value: ${JSON.stringify(uid)}: field is immutable`;
  throw invalid({ type, name }, [{ reason: "FieldValueInvalid", message, field: "metadata.uid" }]);
}

function checkVersion(wanted: Fields, { current, update }: Against): void {
  const { type, name } = update;
  const version = fieldsOf(wanted.metadata).resourceVersion;
  const absent = version === undefined || version === "";
  if (absent && update.by === "Put" && !type.traits.unconditionalUpdate) {
    const message = "Invalid value: 0: must be specified for an update";
    throw invalid({ type, name }, [
      { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion" },
    ]);
  }
  if (absent || version === current.metadata.resourceVersion) return;
  throw conflict({ type, name }, staleWrite);
}

/** Takes from `wanted` what this request may write, and the rest from the current object. */
function compose(wanted: Fields, against: Against): ModelObject {
  const { current, update } = against;
  const { type, name } = update;
  if (update.part === "Status") return composeStatus(wanted, against);
  const metadata = composeMeta(fieldsOf(wanted.metadata), against);
  const { apiVersion: _a, kind: _k, metadata: _m, ...rest } = wanted;
  const { apiVersion, kind } = current;
  const body: Fields = { apiVersion, kind, metadata, ...rest };
  const prepared = rulesOf(type.storage).prepareUpdate?.(body) ?? body;
  const complete = withSchema(prepared, { type, name, strictFields: update.strictFields });
  const causes = rulesOf(type.storage).causes?.(complete) ?? [];
  if (causes.length > 0) throw invalid({ type, name }, causes);
  const object = type.traits.statusSubresource ? withStatusOf(complete, current) : complete;
  return withGeneration(object as ModelObject, against);
}

function composeStatus(wanted: Fields, against: Against): ModelObject {
  const { current, update } = against;
  const { type, name } = update;
  if (!type.custom) {
    const metadata = composeMeta(fieldsOf(wanted.metadata), against);
    return { ...current, metadata, status: wanted.status };
  }
  const body = { ...current, status: wanted.status };
  return withSchema(body, { type, name, strictFields: update.strictFields }) as ModelObject;
}

function withStatusOf(object: Fields, current: ModelObject): Fields {
  const { status: _ignored, ...rest } = object;
  return current.status === undefined ? rest : { ...rest, status: current.status };
}

const writable = ["labels", "annotations", "finalizers", "ownerReferences"] as const;

function composeMeta(wanted: Fields, { current, update }: Against): ModelMeta {
  const metadata: Record<string, unknown> = { ...current.metadata };
  for (const field of writable) {
    const value = wanted[field];
    if (isEmpty(value)) delete metadata[field];
    else metadata[field] = value;
  }
  const next = metadata as unknown as ModelMeta;
  if (current.metadata.deletionTimestamp === undefined) return next;
  const late = (next.finalizers ?? []).filter(
    (one) => !(current.metadata.finalizers ?? []).includes(one),
  );
  if (late.length === 0) return next;
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${late.map((one) => JSON.stringify(one)).join(", ")}}`;
  throw invalid({ type: update.type, name: update.name }, [
    { reason: "FieldValueForbidden", message, field: "metadata.finalizers" },
  ]);
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value as object).length === 0;
}

/** The generation counts changes of everything but metadata and, if it is a subresource, status. */
function withGeneration(next: ModelObject, { current, update }: Against): ModelObject {
  if (!update.type.traits.generation) return next;
  const { metadata: _before, ...before } = current;
  const { metadata: _after, ...after } = next;
  if (jsonEqual(before, after)) return next;
  const generation = (current.metadata.generation ?? 0) + 1;
  return { ...next, metadata: { ...next.metadata, generation } };
}

/** Source: apiserver `pkg/registry/generic/registry/store.go`, ShouldDeleteDuringUpdate. */
function isFinallyGone(object: ModelObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata;
  const inSpec = object.kind === "Namespace" ? fieldsOf(object.spec).finalizers : [];
  const held = [...(finalizers ?? []), ...(Array.isArray(inSpec) ? inSpec : [])];
  if (deletionTimestamp === undefined || held.length > 0) return false;
  return (deletionGracePeriodSeconds ?? 0) === 0;
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
export function readScale(context: ApiContext, { type, namespace, name }: ScaleTarget): object {
  const object = context.store.collection(type.storage).get(namespace, name);
  if (!object) throw notFound({ type, name });
  return scaleOf(object);
}

/** Changes the desired number of replicas; `change` maps the current Scale to the next. */
export function writeScale(
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
