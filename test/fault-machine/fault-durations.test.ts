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
}

const rows: readonly Row[] = [
  { fault: "the API server cannot be reached", kind: "blackout" },
  { fault: "no write is answered, though each is carried out", kind: "lost-answers" },
  { fault: "every cordon is refused", kind: "refuse-cordon", with: webhookDown },
  { fault: "every eviction is refused", kind: "refuse-eviction", with: webhookDown },
  { fault: "pods may not be listed", kind: "refuse-pod-list", with: webhookDown },
  { fault: "every status of a Departure is refused", kind: "refuse-status", with: webhookDown },
  { fault: "every Event is refused", kind: "refuse-events", with: webhookDown },
  { fault: "every budget is closed", kind: "budget-closed" },
  { fault: "no machine is replaced", kind: "stock-out" },
  {
    fault: "the cloud refuses every call",
    kind: "cloud-refuses",
    with: { code: "CLOUD_UNREACHABLE", only: "All" },
  },
  { fault: "the cloud releases machines, and answers with errors", kind: "release-unanswered" },
  { fault: "every kubelet is cut off", kind: "partition", with: { from: 0, count: 5 } },
  { fault: "watches of nodes show nothing new", kind: "watch-stalled", with: { kind: "/nodes" } },
];

/** In minutes. An hour is longer than every timeout, and leaves time for what comes after it. */
const hour: readonly [string, FaultDuration] = ["an hour", 60];
const others: readonly (typeof hour)[] = [
  ["a second", 1 / 60],
  ["a minute", 1],
  ["ever", "ever"],
];
const durations = isLongRun ? [hour, ...others] : [hour];

function world({ kind, with: own = {} }: Row, lasts: FaultDuration): World {
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
    // In the middle of the first drain.
    faults: [{ kind, start: { phase: "Draining", nth: 1, afterSeconds: 1 }, lasts, with: own }],
  };
}

describe.each(rows)("if $fault", (row) => {
  it.each(durations)("no rule is broken: for %s", async (_, lasts) => {
    const { violations, departures } = await runWorld(world(row, lasts));
    expect(departures).toBeGreaterThan(0);
    const known = openCheckers();
    const news = violations.filter(({ checker }) => !known.has(checker));
    expect(news.map(describeViolation)).toEqual([]);
  });
});
