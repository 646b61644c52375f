/** `values.yaml`, `values.schema.json`, the chart's README and the table of docs, from one list. */
import { stringify } from "yaml";
import type { JsonSchema } from "../src/config/schema/crd.ts";
import { type ChartValue, spanLimits } from "./chart-schema.ts";
import { valueGroups } from "./chart-value-list.ts";

const notice =
  "Generated from tools/chart-value-list.ts by `npm run generate`; edit the list there.";

/** The files of the chart's values, by path. */
export function generateChartValues(): ReadonlyMap<string, string> {
  return new Map([
    ["deploy/chart/values.yaml", valuesFile()],
    ["deploy/chart/templates/_defaults.tpl", defaultsFile()],
    ["deploy/chart/values.schema.json", `${JSON.stringify(schemaOfAll(), undefined, 2)}\n`],
    ["deploy/chart/README.md", readme()],
    ["docs/reference/chart.md", page()],
  ]);
}

/** A part of the tree of values. */
interface Branch {
  readonly parts: Map<string, Branch | ChartValue>;
}

function isBranch(part: Branch | ChartValue): part is Branch {
  return "parts" in part;
}

function treeOf(values: readonly ChartValue[]): Branch {
  const trunk: Branch = { parts: new Map() };
  for (const value of values) {
    const names = value.path.split(".");
    const last = names.pop() as string;
    let at = trunk;
    for (const name of names) {
      const found = at.parts.get(name);
      const next: Branch = found !== undefined && isBranch(found) ? found : { parts: new Map() };
      at.parts.set(name, next);
      at = next;
    }
    at.parts.set(last, value);
  }
  return trunk;
}

function allValues(): readonly ChartValue[] {
  return valueGroups.flatMap(({ values }) => values);
}

function schemaOfAll(): JsonSchema {
  const { properties, ...rest } = schemaOf(treeOf(allValues()));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...rest,
    // Helm reserves it: a chart passes it on to its subcharts.
    properties: { global: { type: "object" }, ...(properties as object) },
  };
}

function schemaOf(branch: Branch): JsonSchema {
  const properties = [...branch.parts].map(([name, part]) => [
    name,
    isBranch(part) ? schemaOf(part) : { description: part.about, ...orEmpty(part) },
  ]);
  return {
    ...{ type: "object", additionalProperties: false },
    properties: Object.fromEntries(properties),
  };
}

/**
 * Values that are not in `values.yaml` may be left empty, too. Those that are in it need no such
 * rule: Helm removes their empty values before it validates the schema.
 */
function orEmpty(value: ChartValue): JsonSchema {
  const { schema } = value;
  if ((value.default ?? undefined) !== undefined) return schema;
  const { type, enum: choices, anyOf } = schema;
  if (Array.isArray(choices)) return { ...schema, enum: [...choices, null] };
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  return { ...schema, type: [...new Set([type, "null"].flat())] };
}

/**
 * What each value counts as if it is left empty: its default. A map or list counts as an empty one,
 * and has its default only if the whole section is left empty.
 */
function defaultsFile(): string {
  const lines = Object.entries(defaultsOf(treeOf(allValues()))).map(
    ([name, part]) => `${JSON.stringify(name)}: ${JSON.stringify(part)}`,
  );
  const text = `{\n${lines.join(",\n")}\n}`;
  const limits = JSON.stringify(spanLimits("run"));
  return (
    `{{- /* ${notice} */}}\n{{- define "lastcall.defaults" }}\n${text}\n{{- end }}\n` +
    `\n{{- define "lastcall.spanLimits" }}${limits}{{- end }}\n`
  );
}

function defaultsOf({ parts }: Branch): object {
  const each = [...parts].map(([name, part]) => [
    name,
    isBranch(part) ? { parts: defaultsOf(part) } : defaultIn(part),
  ]);
  return Object.fromEntries(each);
}

function defaultIn({ default: usual = undefined }: ChartValue): object {
  if (usual === undefined || usual === null) return {};
  if (typeof usual !== "object") return { default: usual };
  const empty = Array.isArray(usual) ? [] : {};
  return { default: empty, ...(Object.keys(usual).length > 0 && { usual }) };
}

function valuesFile(): string {
  const written = treeOf(allValues().filter((value) => value.default !== undefined));
  const lines = linesOf(written, "");
  return `# ${notice}\n# values.schema.json rejects any other value, except those of estafette's chart that README.md lists.\n${lines.join("\n")}\n`;
}

function linesOf(branch: Branch, indent: string): readonly string[] {
  return [...branch.parts].flatMap(([name, part]) => {
    if (isBranch(part)) return [`${indent}${name}:`, ...linesOf(part, `${indent}  `)];
    const comment = wrapped(part.about, 98 - indent.length).map((line) => `${indent}# ${line}`);
    if (part.default === null) return [...comment, `${indent}# ${name}: []`];
    const value = stringify({ [name]: part.default }, { lineWidth: 0 })
      .trimEnd()
      .split("\n");
    return [...comment, ...value.map((line) => `${indent}${line}`)];
  });
}

/** Breaks a text into lines of at most `width` characters. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function tables(level: string): string {
  return valueGroups
    .map(({ title, values }) => `${level} ${title}\n\n${table(values)}`)
    .join("\n\n");
}

function table(values: readonly ChartValue[]): string {
  return `| value | default | meaning |\n|---|---|---|\n${values.map(row).join("\n")}`;
}

function row(value: ChartValue): string {
  const usual =
    (value.default ?? undefined) === undefined ? "" : `\`${JSON.stringify(value.default)}\``;
  return `| \`${value.path}\` | ${cell(usual)} | ${cell(value.about)} |`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

const intro = `A value that is not listed is rejected, with its path, except Helm's own \`global\`. A map is merged with the chart's, so
an empty \`{}\` changes nothing; a list replaces the chart's. A key without a value counts as not set, and removes a map
or a list that the chart has.`;

function page(): string {
  return `<!-- ${notice} -->\n# Values of the chart\n\n${intro} [Running it](../running.md) describes how to use the chart, and
[migrate](../migrate.md) how to move from estafette's.\n\n${tables("##")}\n`;
}

function readme(): string {
  return `<!-- ${notice} -->
# Lastcall's chart

Spot and preemptible Kubernetes nodes leave on a plan instead of by surprise, and every second of a notice is used.

\`\`\`
helm upgrade --install lastcall deploy/chart --namespace lastcall --create-namespace --values values.yaml
\`\`\`

A plain install only watches: policies define what Lastcall may do, and to which nodes.

\`\`\`yaml
policies:
  - name: spot
    spec:
      lifetime: {min: 12h, max: 24h}
      windows: [{name: nights, type: Allow, timeZone: UTC, start: "22:00", end: "06:00"}]
      budgets: [{nodes: 10%}]
\`\`\`

Helm installs the definitions of the two resources once and never updates them: on an upgrade, apply \`deploy/crds\`
as well, or run \`lastcall setup crds --apply\`.

## Values

${intro}

${tables("###")}
`;
}
