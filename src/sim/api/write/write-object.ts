import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  invalid,
  notFound,
  type StatusCause,
  staleWrite,
} from "../api-refusal.ts";
import {
  type ApiContext,
  apiVersionOf,
  generatedName,
  type ResourceType,
  randomUid,
} from "../resource-registry.ts";
import {
  frozenCopyWithoutNulls,
  jsonEqual,
  type ModelMeta,
  type ModelObject,
  timestamp,
} from "../store/object-store.ts";
import { applySchema } from "../structural-schema.ts";
import { rulesOf } from "./admission.ts";
import { checkLabels } from "./label-check.ts";

interface Creation {
  readonly type: ResourceType;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly body: unknown;
  /** The name in the URL, if a PUT or an apply creates the object. */
  readonly name?: string | undefined;
  readonly dryRun?: boolean;
  readonly strictFields?: boolean;
}

/**
 * Creates an object as the server would: names, defaults, admission, validation, system fields.
 * Throws `ApiRefusal`. With `dryRun` nothing is stored, and the result is what would have been.
 */
export function createObject(context: ApiContext, creation: Creation): ModelObject {
  const { type, namespace } = creation;
  const named = withName(context, creation);
  const name = String(fieldsOf(named.metadata).name);
  checkNamespace(context, { type, namespace, name });
  const collection = context.store.collection(type.storage);
  if (collection.get(namespace, name)) throw alreadyExists({ type, name });
  const prepared =
    rulesOf(type.storage).prepare?.(context, named) ?? withoutEarlyStatus(named, type);
  const complete = withSchema(prepared, { type, name, strictFields: creation.strictFields });
  const causes = rulesOf(type.storage).causes?.(complete) ?? [];
  if (causes.length > 0) throw invalid({ type, name }, causes);
  const object = withSystemFields(context, { type, namespace, body: complete });
  return creation.dryRun ? object : collection.put(object);
}

/** Prunes, defaults and validates a custom resource by its definition. */
function withSchema(
  body: Fields,
  at: { type: ResourceType; name: string; strictFields?: boolean | undefined },
): Fields {
  const schema = at.type.custom?.schema;
  if (!schema) return body;
  const { apiVersion, kind, metadata, ...rest } = body;
  const outcome = applySchema(rest, { schema: { ...schema, type: "object" }, path: "" });
  if (at.strictFields && outcome.unknownFields.length > 0) {
    const list = outcome.unknownFields.map((field) => `unknown field "${field}"`).join(", ");
    throw badRequest(
      `${at.type.kind} in version "${at.type.version}" cannot be handled as a ${at.type.kind}: strict decoding error: ${list}`,
    );
  }
  if (outcome.causes.length > 0) throw invalid(at, outcome.causes);
  return { apiVersion, kind, metadata, ...(outcome.value as object) };
}

function withName(context: ApiContext, creation: Creation): Fields {
  const { type, namespace } = creation;
  if (!isFields(creation.body)) throw badRequest("the object provided is unrecognized");
  const body = frozenCopyWithoutNulls(creation.body);
  checkKind(body, type);
  const metadata = fieldsOf(body.metadata);
  const inBody = metadata.namespace;
  if (typeof inBody === "string" && inBody !== "" && inBody !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  const name = nameOf(context, { metadata, inPath: creation.name });
  if (name === undefined) {
    const message = "Required value: name or generateName is required";
    throw invalid({ type, name: "" }, [
      { reason: "FieldValueRequired", message, field: "metadata.name" },
    ]);
  }
  checkName(name, type);
  checkLabels(metadata, { type, name });
  return { ...body, metadata: { ...metadata, name } };
}

function nameOf(
  context: ApiContext,
  from: { metadata: Fields; inPath: string | undefined },
): string | undefined {
  const { name, generateName } = from.metadata;
  if (typeof name === "string" && name !== "") {
    if (from.inPath === undefined || name === from.inPath) return name;
    throw badRequest(
      `the name of the object (${name}) does not match the name on the URL (${from.inPath})`,
    );
  }
  if (from.inPath !== undefined) return from.inPath;
  if (typeof generateName !== "string" || generateName === "") return undefined;
  return generatedName(context, generateName);
}

function checkKind(body: Fields, type: ResourceType): void {
  const { kind, apiVersion } = body;
  if (kind !== undefined && kind !== type.kind) {
    throw badRequest(
      `${kind} in version "${apiVersion}" cannot be handled as a ${type.kind}: no kind "${kind}" is registered for the resource ${type.plural}`,
    );
  }
  const expected = apiVersionOf(type);
  if (apiVersion === undefined || apiVersion === expected) return;
  throw badRequest(
    `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
  );
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function checkName(name: string, type: ResourceType): void {
  if (subdomain.test(name) && name.length <= 253) return;
  const message = `Invalid value: ${JSON.stringify(name)}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;
  const cause: StatusCause = { reason: "FieldValueInvalid", message, field: "metadata.name" };
  throw invalid({ type, name }, [cause]);
}

const namespaceType = { group: "", plural: "namespaces", kind: "Namespace" };

/** Source: apiserver `pkg/admission/plugin/namespace/lifecycle/admission.go`. */
function checkNamespace(
  context: ApiContext,
  target: { type: ResourceType; namespace: string; name: string },
): void {
  const { type, namespace, name } = target;
  if (!type.namespaced) return;
  const object = context.store.collection("namespaces").get("", namespace);
  if (!object) throw notFound({ type: namespaceType, name: namespace });
  if (object.metadata.deletionTimestamp === undefined) return;
  const message = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  throw forbidden({ type, name }, { message, causes: [cause] });
}

/** A create request for a kind with a status subresource cannot set the status. */
function withoutEarlyStatus(body: Fields, type: ResourceType): Fields {
  if (!type.traits.statusSubresource || type.traits.statusOnCreate) return body;
  const { status: _ignored, ...rest } = body;
  return rest;
}

const systemFields = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "generation",
  "managedFields",
  "selfLink",
  "namespace",
]);

function withSystemFields(
  context: ApiContext,
  parts: { type: ResourceType; namespace: string; body: Fields },
): ModelObject {
  const { type, namespace, body } = parts;
  const given = Object.entries(fieldsOf(body.metadata)).filter(([key]) => !systemFields.has(key));
  const metadata = {
    ...Object.fromEntries(given),
    ...(type.namespaced ? { namespace } : {}),
    uid: randomUid(context),
    resourceVersion: "",
    creationTimestamp: timestamp(context.clock.now()),
    ...(type.traits.generation ? { generation: 1 } : {}),
  };
  const { apiVersion: _a, kind: _k, metadata: _m, ...rest } = body;
  const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, ...rest };
  return object as unknown as ModelObject;
}

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
  checkLabels(wanted, update);
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
