/**
 * One fault in a fleet that rotates, for a second, a minute, an hour and for ever: none of the
 * rules is broken, whatever the duration. docs/failure-modes.md has a row for each fault.
 */
import { describe, expect, it } from "vitest";
import { isLongRun } from "../support/long-run.ts";
import { openCheckers } from "./corpus.ts";
import { runWorld } from "./run-world.ts";
import { describeViolation } from "./story.ts";
import type { FaultDuration, World } from "./world.ts";

const webhookDown = {
  status: 500,
  message: 'Internal error occurred: failed calling webhook "guard.example.com": timed out',
};

interface Row {
  readonly fault: string;
  readonly kind: string;
  readonly with?: Readonly<Record<string, unknown>>;
  /** By default the middle of the first drain, in which nothing is cordoned or evicted. */
  readonly begins?: { readonly phase: "Preparing" | "Draining"; readonly afterSeconds: 0 };
  /** The outcomes of the departures that it met: for a second, a minute, an hour, and for ever. */
  readonly ends: readonly [string, string, string, string];
}

const unharmed = ["Planned", "Planned", "Planned", "Planned"] as const;
const rolledBack = ["Planned", "Planned", "RolledBack", "RolledBack"] as const;
const givenUp = ["Planned", "RolledBack", "RolledBack", "RolledBack"] as const;
/** Just after the phase has been recorded, and before what it does. */
const at = (phase: "Preparing" | "Draining") => ({ phase, afterSeconds: 0 }) as const;

const rows: readonly Row[] = [
  { fault: "the API server cannot be reached", kind: "blackout", ends: unharmed },
  {
    fault: "no write is answered, though each is carried out",
    ...{ kind: "lost-answers", ends: unharmed },
  },
  {
    fault: "every cordon is refused",
    ...{ kind: "refuse-cordon", with: webhookDown, begins: at("Preparing"), ends: givenUp },
  },
  {
    fault: "every eviction is refused",
    ...{ kind: "refuse-eviction", with: webhookDown, begins: at("Draining"), ends: rolledBack },
  },
  {
    fault: "pods may not be listed",
    ...{ kind: "refuse-pod-list", with: webhookDown },
    ends: ["Planned", "Planned", "Failed Planned RolledBack", "Failed RolledBack"],
  },
  {
    fault: "every status of a Departure is refused",
    ...{ kind: "refuse-status", with: webhookDown, ends: rolledBack },
  },
  {
    fault: "every Event is refused",
    ...{ kind: "refuse-events", with: webhookDown, ends: unharmed },
  },
  {
    fault: "every budget is closed",
    ...{ kind: "budget-closed", begins: at("Draining"), ends: rolledBack },
  },
  { fault: "no machine is replaced", kind: "stock-out", ends: unharmed },
  {
    fault: "the cloud refuses every call",
    ...{ kind: "cloud-refuses", with: { code: "CLOUD_UNREACHABLE", only: "All" } },
    ends: ["Planned", "Planned", "Failed", "Failed"],
  },
  {
    fault: "the cloud releases machines, and answers with errors",
    ...{ kind: "release-unanswered", ends: unharmed },
  },
  {
    fault: "every kubelet is cut off",
    ...{ kind: "partition", with: { from: 0, count: 5 }, ends: rolledBack },
  },
  {
    fault: "watches of nodes show nothing new",
    ...{ kind: "watch-stalled", with: { kind: "/nodes" }, ends: unharmed },
  },
];

/**
 * In minutes. An hour is longer than every timeout, and leaves time for what comes after it. The
 * minute is a little longer than a start may fail, which is a minute too.
 */
const hour: readonly [string, FaultDuration, keyof Row["ends"] & number] = ["an hour", 60, 2];
const others: readonly (typeof hour)[] = [
  ["a second", 1 / 60, 0],
  ["a minute", 65 / 60, 1],
  ["ever", "ever", 3],
];
const durations = isLongRun ? [hour, ...others] : [hour];

function world({ kind, with: own = {}, begins }: Row, lasts: FaultDuration): World {
  const start = { phase: "Draining", nth: 1, afterSeconds: 1, ...begins } as const;
  return {
    ...{ seed: 1, hours: 4, replicas: 2 },
    nodes: ["a", "b", "c", "a", "b"].map((zone, at) => ({ zone, ageMinutes: 20 * at })),
    policy: {
      lifetime: { max: "3h", reserve: "30m" },
      spacing: { mode: "Late", min: "5m" },
      budgets: [{ nodes: 1 }],
      drain: { timeout: "5m", onTimeout: "RollBack" },
      instance: { release: "Recreate", awaitMachine: "10m" },
    },
    workloads: [
      {
        ...{ name: "app0", kind: "Deployment", replicas: 6, cpu: "100m" },
        ...{ graceSeconds: 60, exitSeconds: 20, maxUnavailable: 2 },
      },
    ],
    machines: { bootSeconds: 50, recreateSeconds: 10, stopSeconds: 20 },
    faults: [{ kind, start, lasts, with: own }],
  };
}

const outcomes = ["Cancelled", "Expired", "Failed", "Planned", "Preempted", "RolledBack"];

describe.each(rows)("if $fault", (row) => {
  it.each(durations)("no rule is broken: for %s", async (_, lasts, column) => {
    const { violations, departures, coverage } = await runWorld(world(row, lasts));
    expect(departures).toBeGreaterThan(0);
    const known = openCheckers();
    const news = violations.filter(({ checker }) => !known.has(checker));
    expect(news.map(describeViolation)).toEqual([]);
    const met = outcomes.filter((outcome) => coverage.counts.has(`${row.kind}/${outcome}`));
    expect(met.join(" ")).toBe(row.ends[column]);
  });
});
