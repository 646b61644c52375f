import { type Fields, fieldsOf, isFields } from "../../../core/json/json-field.ts";
import { type ApiContext, generatedName, randomUid, timestamp } from "../api-context.ts";
import {
  alreadyExists,
  badRequest,
  forbidden,
  invalid,
  notFound,
  type StatusCause,
} from "../api-refusal.ts";
import { apiVersionOf, type ResourceType } from "../resource-registry.ts";
import { frozenCopyWithoutNulls, type ModelObject } from "../store/model-object.ts";
import { applySchema } from "../structural-schema.ts";
import { rulesOf } from "./admission.ts";

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
export function withSchema(
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
