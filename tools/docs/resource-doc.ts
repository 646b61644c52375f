import type { FieldSchema, ObjectField, SchemaRule } from "../../src/config/schema/field-schema.ts";
import { apiGroup, apiVersion } from "../../src/config/schema/policy-document.ts";
import {
  type ResourceDefinition,
  resourceDefinitions,
} from "../../src/config/schema/resource-definition.ts";

const notice = "<!-- Generated from src/config by `npm run generate`; edit the schema there. -->\n";

/** The reference of each resource, by path. */
export function generateResourceDocs(): Map<string, string> {
  return new Map(
    resourceDefinitions.map((resource) => [
      `docs/reference/${resource.singular}.md`,
      pageOf(resource),
    ]),
  );
}

function pageOf(resource: ResourceDefinition): string {
  const { kind, plural, shortName, description, spec, status } = resource;
  const { false: narrow = [], true: wide = [] } = Object.groupBy(resource.columns, (column) =>
    column.priority === undefined ? "false" : "true",
  );
  const names = (columns: readonly { readonly name: string }[]) =>
    columns.map(({ name }) => name.toUpperCase()).join(", ");
  const also = wide.length === 0 ? "" : `, with \`-o wide\` ${names(wide)} as well`;
  const parts = [
    `${notice}# ${kind}`,
    description,
    `\`${apiGroup}/${apiVersion}\`, cluster-scoped. \`kubectl get ${plural}\` (short \`${shortName}\`) shows ${names(narrow)}${also}.`,
    ...selection(resource),
    "Durations are written as in Go (`90s`, `12h30m`), instants in RFC 3339 (`2026-12-01T00:00:00Z`). How a departure ends: [outcomes](../glossary.md#outcomes).",
    `## spec\n\n${fieldTable(spec, "")}`,
    ...refusals(spec),
    `## status\n\n${fieldTable(status, "")}`,
  ];
  return `${parts.join("\n\n")}\n`;
}

function selection({ labels, selectable }: ResourceDefinition): readonly string[] {
  if (labels.length + selectable.length === 0) return [];
  const byLabel = labels.map((label) => `\`${label}\``).join(" and ");
  const byField = selectable.map((path) => `\`${path.slice(1)}\``).join(", ");
  return [
    `Selected by \`-l\` with the labels ${byLabel}, whose values have at most 63 characters ([0022](../adr/0022-labels-of-a-departure.md)), and from Kubernetes 1.31 on by \`--field-selector\` with ${byField}.`,
  ];
}

interface Row {
  readonly path: string;
  readonly field: FieldSchema;
  readonly required: boolean;
}

function fieldTable(schema: ObjectField, path: string): string {
  const rows = rowsOf(schema, path).map(({ path: name, field, required }) => {
    const fallback = required ? "required" : defaultOf(field);
    return `| \`${name}\` | ${typeOf(field)} | ${fallback} | ${field.description} |`;
  });
  return `| field | type | default | meaning |\n|---|---|---|---|\n${rows.join("\n")}`;
}

/** The fields nested in a field, each with its path from the top: `windows[].days`. */
function rowsOf(field: FieldSchema, path: string): readonly Row[] {
  if (field.type === "list") return rowsOf(field.items, `${path}[]`);
  if (field.type !== "object") return [];
  return Object.entries(field.properties).flatMap(([name, inner]) => {
    const own = path === "" ? name : `${path}.${name}`;
    const required = field.required?.includes(name) ?? false;
    return [{ path: own, field: inner, required }, ...rowsOf(inner, own)];
  });
}

function defaultOf(field: FieldSchema): string {
  if (!("default" in field) || field.default === undefined) return "";
  const isText = typeof field.default === "string";
  if (field.type === "object") return "";
  return `\`${isText ? field.default : JSON.stringify(field.default)}\``;
}

function typeOf(field: FieldSchema): string {
  switch (field.type) {
    case "list":
      return `list of ${typeOf(field.items)}`;
    case "map":
      return "map of strings";
    case "amount":
      return "number or percentage";
    case "string":
      return textType(field);
    default:
      return field.type;
  }
}

function textType(field: Extract<FieldSchema, { type: "string" }>): string {
  if (field.enum !== undefined) return field.enum.map((word) => `\`${word}\``).join(", ");
  if (field.format === "date-time") return "instant";
  return field.wanted?.startsWith("a duration") ? "duration" : "string";
}

/** The rules across fields, which a reader looks up after a refusal. */
function refusals(schema: ObjectField): readonly string[] {
  const lines = rulesUnder(schema, "spec").map(({ path, rule }) => {
    const local =
      rule.localOnly === undefined ? "" : ` (checked by Lastcall only: ${rule.localOnly})`;
    return `- \`${path}\`: ${rule.wanted}${local}`;
  });
  if (lines.length === 0) return [];
  const intro =
    "In addition to the types and bounds above, both the API server (in CEL) and Lastcall check these rules:";
  return [`## What is expected\n\n${intro}\n\n${[...new Set(lines)].join("\n")}`];
}

interface PlacedRule {
  readonly path: string;
  readonly rule: SchemaRule;
}

function rulesUnder(field: FieldSchema, path: string): readonly PlacedRule[] {
  const own = (field.rules ?? []).map((rule) => ({
    path: rule.at === undefined ? path : `${path}.${rule.at}`,
    rule,
  }));
  if (field.type === "list") return [...own, ...rulesUnder(field.items, `${path}[]`)];
  if (field.type !== "object") return own;
  const inner = Object.entries(field.properties).flatMap(([name, part]) =>
    rulesUnder(part, `${path}.${name}`),
  );
  return [...own, ...inner];
}
