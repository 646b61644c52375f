/**
 * What of the chart nobody writes: what `values.yaml` says of its values, in the other forms that
 * Helm and its users need, and copies of files, because Helm reads none outside of the chart.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generateCrds, type JsonSchema } from "../src/config/schema/crd.ts";
import {
  fileOptions,
  optionsSchema,
  policiesSchema,
  spanLimits,
  textChecks,
} from "./chart-schema.ts";
import { type ChartValue, readChartValues } from "./chart-values.ts";
import { dashboardText } from "./dashboard.ts";
import { root } from "./source-tree.ts";

/** The generated files of the chart, by path. */
export function generateChart(): ReadonlyMap<string, string> {
  const values = readChartValues();
  const crds = [...generateCrds()].map(
    ([path, text]) => [path.replace("deploy/", "deploy/chart/"), text] as const,
  );
  return new Map([
    ...crds,
    ["deploy/chart/values.schema.json", schemaText(values)],
    ["deploy/chart/templates/_defaults.tpl", defaultsTemplate(values)],
    ["deploy/chart/README.md", withTables("deploy/chart/README.md", "###", values)],
    ["docs/reference/chart.md", withTables("docs/reference/chart.md", "##", values)],
    ["deploy/chart/files/text-checks.json", `${JSON.stringify(textChecks(), undefined, 2)}\n`],
    ["deploy/chart/files/alerts.yaml", read("deploy/prometheus/alerts.yaml")],
    ["deploy/chart/files/dashboard.json", dashboardText()],
    ["deploy/grafana/lastcall.json", dashboardText()],
  ]);
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** Schemas of values that are derived; those of all others are written into the file. */
const derived: Readonly<Record<string, JsonSchema>> = {
  policies: policiesSchema(),
  "controller.options": optionsSchema("run"),
  "agent.options": optionsSchema("agent"),
};

function schemaText(values: readonly ChartValue[]): string {
  const abouts = new Map(values.map(({ path, about }) => [path, about]));
  const schema = described(JSON.parse(read("deploy/chart/values.schema.json")), abouts, "");
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function described(
  schema: JsonSchema,
  abouts: ReadonlyMap<string, string>,
  path: string,
): JsonSchema {
  const description = abouts.get(path);
  if (description !== undefined) {
    return Object.assign({ description: "" }, derived[path] ?? schema, { description });
  }
  const written = schema.properties as Readonly<Record<string, JsonSchema>> | undefined;
  if (written === undefined) return schema;
  const properties = Object.entries(written).map(([name, inner]) => {
    return [name, described(inner, abouts, path === "" ? name : `${path}.${name}`)] as const;
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

type Defaults = Record<string, { parts: Defaults } | { default?: unknown; usual?: unknown }>;

/**
 * What each value counts as if it is left empty: its default. A map or list counts as an empty one,
 * and has its default only if the whole section is left empty.
 */
function defaultsTemplate(values: readonly ChartValue[]): string {
  const all: Defaults = {};
  for (const value of values) {
    const names = value.path.split(".");
    const last = names.pop() as string;
    let at = all;
    for (const name of names) {
      const section = at[name];
      const parts = section !== undefined && "parts" in section ? section.parts : {};
      at[name] = { parts };
      at = parts;
    }
    at[last] = defaultOf(value);
  }
  const lines = Object.entries(all).map(
    ([name, part]) => `${JSON.stringify(name)}: ${JSON.stringify(part)}`,
  );
  return `{{- /* Written by \`npm run generate\` from values.yaml. */}}
{{- define "lastcall.defaults" }}
{
${lines.join(",\n")}
}
{{- end }}

{{- define "lastcall.spanLimits" }}${JSON.stringify(spanLimits("run"))}{{- end }}

{{- define "lastcall.fileOptions" }}${JSON.stringify(fileOptions())}{{- end }}
`;
}

function defaultOf({ default: usual }: ChartValue): { default?: unknown; usual?: unknown } {
  if (usual === undefined) return {};
  if (typeof usual !== "object" || usual === null) return { default: usual };
  const empty = Array.isArray(usual) ? [] : {};
  return { default: empty, ...(Object.keys(usual).length > 0 && { usual }) };
}

const notice =
  "<!-- From here on, written by `npm run generate` from deploy/chart/values.yaml. -->\n";

/** The page as it is written, followed by a table of values for each heading. */
function withTables(page: string, level: string, values: readonly ChartValue[]): string {
  const [written = ""] = read(page).split(notice);
  const titles = [...new Set(values.map(({ title }) => title))];
  const tables = titles.map((title) => {
    const rows = values.filter((value) => value.title === title).map(row);
    const head = `${level} ${title}\n\n| value | default | meaning |\n|---|---|---|\n`;
    return `${head}${rows.join("\n")}\n`;
  });
  return `${written}${notice}\n${tables.join("\n")}`;
}

function row({ path, about, default: usual }: ChartValue): string {
  const cell = usual === undefined ? "" : `\`${JSON.stringify(usual)}\``;
  return `| \`${path}\` | ${cell.replaceAll("|", "\\|")} | ${about.replaceAll("|", "\\|")} |`;
}
