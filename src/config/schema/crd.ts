import { printYaml } from "../yaml-text.ts";
import type { FieldSchema, ListField, MapField, ObjectField, SchemaRule } from "./field-schema.ts";
import { apiGroup, apiVersion } from "./policy-document.ts";
import { type ResourceDefinition, resourceDefinitions } from "./resource-definition.ts";

/** A JSON schema (draft 7), as data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The field as a JSON schema: the notation of the CRDs and of the chart's `values.schema.json`. */
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

const notice = "# Generated from src/config by `npm run generate`; edit the schema there.\n";

/** The files generated from the resource definitions, by path. */
export function generateCrds(): Map<string, string> {
  const files = resourceDefinitions.map(
    (resource) =>
      [
        `deploy/crds/${resource.plural}.${apiGroup}.yaml`,
        notice + printYaml(crdOf(resource)),
      ] as const,
  );
  return new Map(files);
}

/** The CustomResourceDefinition of a resource, as `setup crds --apply` sends it. */
export function crdOf(resource: ResourceDefinition): JsonSchema {
  const { kind, plural, singular, shortName } = resource;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${apiGroup}` },
    spec: {
      group: apiGroup,
      scope: "Cluster",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        shortNames: [shortName],
        categories: ["lastcall"],
      },
      versions: [
        {
          name: apiVersion,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: resource.columns,
          ...(resource.selectable.length > 0 && {
            selectableFields: resource.selectable.map((jsonPath) => ({ jsonPath })),
          }),
          schema: { openAPIV3Schema: rootOf(resource) },
        },
      ],
    },
  };
}

function rootOf(resource: ResourceDefinition): JsonSchema {
  return {
    type: "object",
    description: resource.description,
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: openApiOf(resource.spec),
      status: openApiOf(resource.status),
    },
  };
}

/** A field as a structural schema of a CRD, with its rules in CEL. */
function openApiOf(field: FieldSchema): JsonSchema {
  const rules = [...celRulesOf(field.rules ?? []), ...keyRules(field)];
  return {
    ...openApiShape(field),
    ...(rules.length > 0 && { "x-kubernetes-validations": rules }),
  };
}

function openApiShape(field: FieldSchema): JsonSchema {
  switch (field.type) {
    case "object":
      return openApiObject(field);
    case "map":
      return openApiMap(field);
    case "list":
      return openApiList(field);
    case "amount": {
      const { description, minimum, pattern } = field;
      return { description, "x-kubernetes-int-or-string": true, minimum, pattern };
    }
    case "integer":
    case "number": {
      const { type: _types, ...rest } = jsonSchemaOf(field);
      return { type: field.type, ...rest, ...(field.nullable && { nullable: true }) };
    }
    case "string": {
      const { pattern: _pattern, ...rest } = jsonSchemaOf(field);
      return field.patternInRules ? rest : jsonSchemaOf(field);
    }
    default:
      return jsonSchemaOf(field);
  }
}

function openApiObject(field: ObjectField): JsonSchema {
  const { additionalProperties: _closed, properties: _properties, ...rest } = jsonSchemaOf(field);
  const inner = Object.entries(field.properties).map(([name, part]) => [name, openApiOf(part)]);
  return {
    ...rest,
    ...(inner.length > 0 && { properties: Object.fromEntries(inner) }),
    ...(field.open && { "x-kubernetes-preserve-unknown-fields": true }),
  };
}

function openApiMap(field: MapField): JsonSchema {
  const { propertyNames: _names, ...rest } = jsonSchemaOf(field);
  return { ...rest, additionalProperties: openApiOf(field.values) };
}

function openApiList(field: ListField): JsonSchema {
  const { uniqueItems: _unique, ...rest } = jsonSchemaOf(field);
  return {
    ...rest,
    items: openApiOf(field.items),
    ...(field.unique && { "x-kubernetes-list-type": "set" }),
    ...(field.mapKey && {
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": [field.mapKey],
    }),
  };
}

function celRulesOf(rules: readonly SchemaRule[]): readonly JsonSchema[] {
  return rules.flatMap(({ cel, at, wanted }) =>
    cel === undefined
      ? []
      : [{ rule: cel, message: `expected ${wanted}`, ...(at && { fieldPath: `.${at}` }) }],
  );
}

/** A structural schema has no `propertyNames`; CEL says the same. */
function keyRules(field: FieldSchema): readonly JsonSchema[] {
  if (field.type !== "map") return [];
  const { keyPattern, keyMaxLength } = field;
  const rule = `self.all(key, size(key) <= ${keyMaxLength} && key.matches(r'${keyPattern}'))`;
  return [{ rule, message: "expected names of labels as keys, such as example.com/tier" }];
}
