import { formatInstant } from "../../core/time/time.ts";
import type { SimulationFacts } from "../../sim/demo/simulation-report.ts";
import { formatTable } from "../command-line/table.ts";

/** The report for people. */
export function headlessTable(facts: SimulationFacts): string {
  const { seed, nodeHours, policies, violations, wallSeconds } = facts;
  const heads = [
    "POLICY",
    "PLANNED",
    "PREEMPTED",
    "FORCED",
    "EXPIRED",
    "PODS CUT",
    "PODS LOST",
    "REPLACEMENTS",
    "LARGEST LOSS IN 60 S",
    "IN 1 H",
  ];
  const rows = policies.map(({ name, counts }) => [
    name,
    ...[counts.plannedDepartures, counts.preempted, counts.forced, counts.expired].map(String),
    ...[counts.podsCut, counts.podsLost, counts.replacements].map(String),
    ...[counts.largestLossIn60s, counts.largestLossIn1h].map(String),
  ]);
  const broken = violations.map(
    ({ invariant, at, what }) => `violated: ${invariant} at ${formatInstant(at)}: ${what}\n`,
  );
  const foot = `${nodeHours} node-hours, the same interruptions for each policy (seed ${seed}), in ${wallSeconds} s; violated invariants: ${violations.length}\n`;
  return formatTable(heads, rows) + foot + broken.join("");
}
