/**
 * What of the chart is not written by hand: its values, the resource definitions, and copies of
 * files that Helm reads only inside of the chart.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generateCrds } from "../src/config/schema/crd.ts";
import { generateChartValues } from "./chart-values.ts";
import { dashboardText } from "./dashboard.ts";
import { root } from "./source-tree.ts";

/** The generated files of the chart, by path. */
export function generateChart(): ReadonlyMap<string, string> {
  const crds = [...generateCrds()].map(
    ([path, text]) => [path.replace("deploy/", "deploy/chart/"), text] as const,
  );
  const alerts = readFileSync(join(root, "deploy/prometheus/alerts.yaml"), "utf8");
  return new Map([
    ...crds,
    ...generateChartValues(),
    ["deploy/chart/files/alerts.yaml", alerts],
    ["deploy/chart/files/dashboard.json", dashboardText()],
    ["deploy/grafana/lastcall.json", dashboardText()],
  ]);
}
