/** The chart's values as `values.yaml` has them: each is a key with a comment above it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "./source-tree.ts";

export interface ChartValue {
  /** With dots, as `--set` takes it. */
  readonly path: string;
  /** The heading above it, `## Controller`. */
  readonly title: string;
  /** The comment: one or more complete sentences. */
  readonly about: string;
  /** Absent if the key is commented out, `#extraEnv:`. */
  readonly default?: unknown;
}

/** All values, in the order of the file. */
export function readChartValues(): readonly ChartValue[] {
  return chartValuesIn(readFileSync(join(root, "deploy/chart/values.yaml"), "utf8"));
}

export function chartValuesIn(text: string): readonly ChartValue[] {
  const defaults: unknown = parse(text);
  const values: ChartValue[] = [];
  let title = "";
  let about: string[] = [];
  let names: readonly string[] = [];
  for (const line of text.split("\n")) {
    const sentence = /^ *# (.*)$/.exec(line)?.[1];
    if (sentence !== undefined) {
      about.push(sentence);
      continue;
    }
    title = /^## (.*)$/.exec(line)?.[1] ?? title;
    const [, indent = "", key] = /^((?: {2})*)#?(\w+):/.exec(line) ?? [];
    if (key !== undefined) {
      names = [...names.slice(0, indent.length / 2), key];
      const value = { path: names.join("."), title, about: about.join(" ") };
      if (about.length > 0) values.push({ ...value, ...defaultAt(defaults, names) });
    }
    about = [];
  }
  return values;
}

function defaultAt(defaults: unknown, names: readonly string[]): { readonly default?: unknown } {
  let at = defaults;
  for (const name of names) at = (at as Readonly<Record<string, unknown>> | undefined)?.[name];
  return at === undefined ? {} : { default: at };
}
