import { describe, expect, test } from "vitest";
import { metricNames } from "../../src/contracts/telemetry.ts";
import { counters, gauges, histograms } from "../../src/server/metrics.ts";
import { dashboardText, panels } from "../../tools/dashboard.ts";

const described = { ...counters, ...gauges };
const labelsOf = (name: string): readonly string[] =>
  name in described
    ? described[name as keyof typeof described].labels
    : ["le", ...histograms[name as keyof typeof histograms].labels];
const names = [
  ...metricNames.counters,
  ...metricNames.gauges,
  ...metricNames.histograms.map((name) => `${name}_bucket`),
];

describe("the dashboard", () => {
  test.each(panels)("uses only existing metrics and labels in $title", ({ of, queries }) => {
    for (const [expr, legend] of queries) {
      const asked = [...expr.matchAll(/lastcall_[a-z_]+/g)].map(([name]) => name);
      expect(names).toEqual(expect.arrayContaining(asked));
      expect(asked.every((name) => name.startsWith(of))).toBe(true);
      const by = [...expr.matchAll(/by \(([^)]+)\)/g)].flatMap(([, list = ""]) => list.split(", "));
      const chosen = [...expr.matchAll(/([a-z]+)(?:=~|!=|=)"/g)].map(([, label = ""]) => label);
      const shown = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
      expect(labelsOf(of)).toEqual(expect.arrayContaining([...by, ...chosen]));
      expect(by).toEqual(expect.arrayContaining(shown));
    }
  });

  test("has a separate position for each panel", () => {
    const { panels: placed } = JSON.parse(dashboardText());
    const places = placed.map(
      ({ gridPos: { x, y } }: { gridPos: { x: number; y: number } }) => `${x} ${y}`,
    );
    expect(new Set(places).size).toBe(panels.length);
    expect(
      placed.every(({ gridPos: { x, w } }: { gridPos: { x: number; w: number } }) => x + w <= 24),
    ).toBe(true);
  });
});
