import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { counters, gauges, histograms } from "../../src/server/metrics.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "../..");
const text = readFileSync(join(root, "deploy/prometheus/alerts.yaml"), "utf8");
const { groups } = parse(text) as { groups: readonly { rules: readonly Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** The labels of each exported series, by the name of the series. */
const labelsOf = new Map<string, readonly string[]>([
  ...Object.entries({ ...counters, ...gauges }).map(
    ([name, { labels }]) => [name, labels] as const,
  ),
  ...Object.entries(histograms).flatMap(([name, { labels }]) => [
    [`${name}_bucket`, [...labels, "le"]] as const,
    [`${name}_count`, labels] as const,
  ]),
]);

describe("the alerts", () => {
  it.each(rules)("$alert uses only existing series and labels", ({ expr }) => {
    const series = [...new Set(expr.match(/\blastcall_\w+/g))];
    expect(series).not.toEqual([]);
    expect(series.filter((name) => !labelsOf.has(name))).toEqual([]);
    const known = series.flatMap((name) => labelsOf.get(name) ?? []);
    const matched = [...expr.matchAll(/[{,]\s*(\w+)\s*=~?/g)].map(([, label]) => label);
    const grouped = [...expr.matchAll(/(?:by|ignoring) \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
      list.split(/,\s*/),
    );
    expect([...matched, ...grouped].filter((label) => !known.includes(label ?? ""))).toEqual([]);
  });

  it.each(rules)("$alert uses only labels that its aggregation keeps", ({ expr, annotations }) => {
    const told = [
      ...Object.values(annotations)
        .join(" ")
        .matchAll(/\$labels\.(\w+)/g),
    ];
    const kept = /(?:sum|max) by \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/) ?? ["policy"];
    expect(told.map(([, label]) => label).filter((label) => !kept.includes(label ?? ""))).toEqual(
      [],
    );
  });

  it.each(rules)("$alert is explained in docs/running.md", ({ alert }) => {
    expect(readFileSync(join(root, "docs/running.md"), "utf8")).toContain(`| \`${alert}\` |`);
  });
});
