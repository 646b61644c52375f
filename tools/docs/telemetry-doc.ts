import { clusterEvents } from "../../src/contracts/telemetry.ts";
import {
  counters,
  type Described,
  gauges,
  histograms,
  secondsBuckets,
} from "../../src/server/metrics.ts";

/** The reference of all metrics and Events, by path. */
export function generateTelemetryDocs(): Map<string, string> {
  const parts = [
    "<!-- Generated from src/server/metrics.ts and src/contracts/telemetry.ts by `npm run generate`. -->\n# Metrics and Events",
    "The controller serves its metrics on `:9101/metrics`; an agent serves the counters that it increments. No label contains a node, a pod or an event id. Which of them to watch: [Running it](../running.md#what-to-watch). What each outcome means: [outcomes](../glossary.md#outcomes).",
    "## Metrics",
    metricTable(),
    bucketText(),
    "## Events",
    "A repeated Event about the same object increments a count instead of being written again.",
    eventTable(),
  ];
  return new Map([["docs/reference/telemetry.md", `${parts.join("\n\n")}\n`]]);
}

function metricTable(): string {
  const rows = [
    ...described(counters, "counter"),
    ...described(gauges, "gauge"),
    ...described(histograms, "histogram"),
  ];
  return table(["metric", "type", "labels", "meaning"], rows);
}

function bucketText(): string {
  const own = Object.entries(histograms)
    .filter(([, { buckets }]) => buckets !== secondsBuckets)
    .map(([name, { buckets }]) => ` Those of ${code(name)}: ${buckets.join(", ")}.`);
  return `The buckets of the histograms, in seconds: ${secondsBuckets.join(", ")}.${own.join("")}`;
}

function described(of: Readonly<Record<string, Described>>, type: string): string[][] {
  return Object.entries(of).map(([name, { labels, help }]) => [
    code(name),
    type,
    labels.map(code).join(", "),
    help,
  ]);
}

function eventTable(): string {
  const rows = Object.entries(clusterEvents).map(([reason, { type, about, tells }]) => [
    code(reason),
    type,
    about.join(", "),
    tells,
  ]);
  return table(["reason", "type", "about", "meaning"], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}
