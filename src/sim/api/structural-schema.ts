import { type Fields, isFields } from "../../core/json/json-field.ts";
import type { StatusCause } from "./api-refusal.ts";
import { jsonEqual } from "./store/object-store.ts";

/** The parts of a CRD's `openAPIV3Schema` that the model supports; CEL rules are not evaluated. */
export interface StructuralSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema | boolean;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly nullable?: boolean;
  readonly default?: unknown;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
}

/** The resulting value, pruned and defaulted, and its validation errors. */
interface SchemaOutcome {
  readonly value: unknown;
  readonly unknownFields: readonly string[];
  readonly causes: readonly StatusCause[];
}

interface Findings {
  readonly unknownFields: string[];
  readonly causes: StatusCause[];
}

/**
 * Prunes, defaults and validates a value, with the causes that the server would return. Source:
 * k8s.io/apiextensions-apiserver `pkg/apiserver/schema` and `pkg/apiserver/validation`.
 */
export function applySchema(
  value: unknown,
  options: { schema: StructuralSchema; path: string },
): SchemaOutcome {
  const findings: Findings = { unknownFields: [], causes: [] };
  const result = visit(value, { ...options, findings });
  return { value: result, ...findings };
}

interface Visit {
  readonly schema: StructuralSchema;
  readonly path: string;
  readonly findings: Findings;
}

/** The schema by which a frozen value is known to be complete and valid. */
const known = new WeakMap<object, StructuralSchema>();

/** What is stored already is not checked again: most writes change a small part of an object. */
function visit(value: unknown, at: Visit): unknown {
  if (typeof value !== "object" || value === null) return visitFresh(value, at);
  if (known.get(value) === at.schema && Object.isFrozen(value)) return value;
  const { unknownFields, causes } = at.findings;
  const before = unknownFields.length + causes.length;
  const result = visitFresh(value, at);
  const isClean = unknownFields.length + causes.length === before;
  if (isClean) known.set(result as object, at.schema);
  return result;
}

function visitFresh(value: unknown, at: Visit): unknown {
  if (value === null && at.schema.nullable) return null;
  if (!hasType(value, at.schema)) {
    at.findings.causes.push(typeCause(value, at));
    return value;
  }
  checkValue(value, at);
  if (Array.isArray(value)) return visitItems(value, at);
  return isFields(value) ? visitMembers(value, at) : value;
}

function visitItems(value: readonly unknown[], at: Visit): readonly unknown[] {
  const { schema, path, findings } = at;
  checkCount(value.length, { at, what: "items", min: schema.minItems, max: schema.maxItems });
  const items = schema.items;
  if (!items) return value;
  return value.map((item, index) =>
    visit(item, { schema: items, path: `${path}[${index}]`, findings }),
  );
}

function visitMembers(value: Fields, at: Visit): Fields {
  const { schema, path, findings } = at;
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(withDefaults(value, schema))) {
    const memberPath = path === "" ? name : `${path}.${name}`;
    const inner = memberSchema(schema, name);
    if (inner === "Unknown") findings.unknownFields.push(memberPath);
    else if (inner === "Any") result[name] = member;
    else if (member === null && !inner.nullable) continue;
    else result[name] = visit(member, { schema: inner, path: memberPath, findings });
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(result, name)) {
      const field = path === "" ? name : `${path}.${name}`;
      findings.causes.push({ reason: "FieldValueRequired", message: "Required value", field });
    }
  }
  return result;
}

function memberSchema(
  schema: StructuralSchema,
  name: string,
): StructuralSchema | "Any" | "Unknown" {
  const known = schema.properties?.[name];
  if (known) return known;
  if (isFields(schema.additionalProperties)) return schema.additionalProperties;
  if (schema.additionalProperties === true) return "Any";
  return schema["x-kubernetes-preserve-unknown-fields"] ? "Any" : "Unknown";
}

const defaults = new WeakMap<StructuralSchema, readonly (readonly [string, unknown])[]>();

function defaultsOf(schema: StructuralSchema): readonly (readonly [string, unknown])[] {
  let found = defaults.get(schema);
  if (found === undefined) {
    found = Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
      inner.default === undefined ? [] : [[name, inner.default] as const],
    );
    defaults.set(schema, found);
  }
  return found;
}

function withDefaults(value: Fields, schema: StructuralSchema): Fields {
  const missing = defaultsOf(schema).filter(([name]) => value[name] === undefined);
  return missing.length === 0 ? value : { ...value, ...Object.fromEntries(missing) };
}

function hasType(value: unknown, schema: StructuralSchema): boolean {
  if (schema["x-kubernetes-int-or-string"]) {
    return Number.isInteger(value) || typeof value === "string";
  }
  switch (schema.type) {
    case "object":
      return isFields(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
    case "string":
    case "boolean":
      return typeof value === schema.type;
    default:
      // A schema without a type accepts anything.
      return true;
  }
}

function typeCause(value: unknown, at: Visit): StatusCause {
  const wanted = at.schema["x-kubernetes-int-or-string"] ? "integer,string" : at.schema.type;
  const shown = JSON.stringify(typeName(value));
  const message = `Invalid value: ${shown}: ${at.path} in body must be of type ${wanted}: ${shown}`;
  return { reason: "FieldValueTypeInvalid", message, field: at.path };
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function checkValue(value: unknown, at: Visit): void {
  const { schema, path, findings } = at;
  if (schema.enum && !schema.enum.some((one) => jsonEqual(one, value))) {
    const supported = schema.enum.map((one) => JSON.stringify(one)).join(", ");
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported}`;
    findings.causes.push({ reason: "FieldValueNotSupported", message, field: path });
  }
  if (typeof value === "string") checkText(value, at);
  if (typeof value === "number") checkNumber(value, at);
}

const patterns = new Map<string, RegExp>();

/** Compiled once: every write checks the same few patterns. */
function patternOf(text: string): RegExp {
  let pattern = patterns.get(text);
  if (pattern === undefined) {
    pattern = new RegExp(text, "u");
    patterns.set(text, pattern);
  }
  return pattern;
}

/** Of all formats only that of instants, as in kube-openapi's strfmt.IsDateTime. */
const instantPattern =
  /^\d{4}-\d{2}-\d{2}t([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(z|[+-]\d{2}:\d{2})$/i;

function checkText(value: string, at: Visit): void {
  const { schema } = at;
  if (schema.format === "date-time" && !instantPattern.test(value)) {
    const shown = JSON.stringify(value);
    const message = `Invalid value: ${shown}: ${at.path} in body must be of type date-time: ${shown}`;
    at.findings.causes.push({ reason: "FieldValueTypeInvalid", message, field: at.path });
  }
  if (schema.pattern !== undefined && !patternOf(schema.pattern).test(value)) {
    refuse(at, value, `should match '${schema.pattern}'`);
  }
  if (schema.minLength === undefined && schema.maxLength === undefined) return;
  checkCount([...value].length, {
    at,
    what: "chars",
    min: schema.minLength,
    max: schema.maxLength,
  });
}

function checkNumber(value: number, at: Visit): void {
  const { minimum, maximum } = at.schema;
  if (minimum !== undefined && value < minimum) {
    refuse(at, value, `should be greater than or equal to ${minimum}`);
  }
  if (maximum !== undefined && value > maximum) {
    refuse(at, value, `should be less than or equal to ${maximum}`);
  }
}

function checkCount(
  count: number,
  bounds: {
    at: Visit;
    what: "items" | "chars";
    min: number | undefined;
    max: number | undefined;
  },
): void {
  const { at, what, min, max } = bounds;
  const long = what === "chars" ? " long" : "";
  if (min !== undefined && count < min) {
    refuse(at, count, `should ${what === "items" ? "have" : "be"} at least ${min} ${what}${long}`);
  }
  if (max === undefined || count <= max) return;
  const message = `Too ${what === "items" ? "many" : "long"}: ${count}: must have at most ${max} ${what === "items" ? "items" : "bytes"}`;
  const reason = what === "items" ? "FieldValueTooMany" : "FieldValueTooLong";
  at.findings.causes.push({ reason, message, field: at.path });
}

function refuse(at: Visit, value: unknown, why: string): void {
  const message = `Invalid value: ${JSON.stringify(value)}: ${at.path} in body ${why}`;
  at.findings.causes.push({ reason: "FieldValueInvalid", message, field: at.path });
}
