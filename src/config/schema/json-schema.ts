import type { FieldSchema, ListField, MapField, ObjectField, StringField } from "./field-schema.ts";
import { apiGroup, apiVersion, type ResourceDefinition } from "./resource-definition.ts";

/** A JSON schema (draft 7), as data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The name of an object, as the API server takes it. */
const metadataSchema: ObjectField = {
  type: "object",
  description: "The usual metadata; the resource is cluster-scoped, so there is no namespace.",
  required: ["name"],
  open: true,
  properties: {
    name: {
      type: "string",
      description: "Its name.",
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
      maxLength: 253,
      wanted: "a name of lower case letters, digits, dashes and dots",
    },
  },
};

/** The whole object of a resource in the notation of its fields. */
export function documentField(resource: ResourceDefinition): ObjectField {
  const one = (value: string): StringField => ({ type: "string", description: "", enum: [value] });
  return {
    type: "object",
    description: resource.description,
    required: ["apiVersion", "kind", "metadata", "spec"],
    properties: {
      apiVersion: one(`${apiGroup}/${apiVersion}`),
      kind: one(resource.kind),
      metadata: metadataSchema,
      spec: resource.spec,
      status: { type: "object", description: "Written by Lastcall.", properties: {}, open: true },
    },
  };
}

/** What an editor, kubeconform and our own check read. */
export function jsonSchemaOf(field: FieldSchema): JsonSchema {
  return defined({ description: field.description, ...shapeOf(field) });
}

function shapeOf(field: FieldSchema): JsonSchema {
  switch (field.type) {
    case "object":
      return objectSchema(field);
    case "map":
      return mapSchema(field);
    case "list":
      return listSchema(field);
    case "amount":
      return { type: ["integer", "string"], minimum: field.minimum, pattern: field.pattern };
    case "integer":
    case "number": {
      const { type, nullable, minimum, maximum } = field;
      return { type: nullable ? [type, "null"] : type, default: field.default, minimum, maximum };
    }
    case "boolean":
      return { type: field.type, default: field.default };
    case "string": {
      const { type, pattern, format, minLength, maxLength } = field;
      return {
        ...{ type, default: field.default, enum: field.enum },
        ...{ pattern, format, minLength, maxLength },
      };
    }
  }
}

function objectSchema(field: ObjectField): JsonSchema {
  const properties = Object.entries(field.properties).map(([name, inner]) => [
    name,
    jsonSchemaOf(inner),
  ]);
  return {
    type: "object",
    default: field.default,
    required: field.required,
    properties: Object.fromEntries(properties),
    additionalProperties: field.open ?? false,
  };
}

function mapSchema(field: MapField): JsonSchema {
  return {
    type: "object",
    maxProperties: field.maxProperties,
    propertyNames: { pattern: field.keyPattern, maxLength: field.keyMaxLength },
    additionalProperties: jsonSchemaOf(field.values),
  };
}

function listSchema(field: ListField): JsonSchema {
  const { minItems, maxItems, unique } = field;
  return {
    type: "array",
    default: field.default,
    minItems,
    maxItems,
    uniqueItems: unique,
    items: jsonSchemaOf(field.items),
  };
}

function defined(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
