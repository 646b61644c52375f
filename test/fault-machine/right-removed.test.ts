/** One verb on one resource that the controller may no longer use, for ever. */
import { expect, it } from "vitest";
import { rights } from "./faults/right-faults.ts";
import { runWorld } from "./run-world.ts";
import { describeViolation } from "./story.ts";
import type { World } from "./world.ts";

const phases = ["Preparing", "Draining", "Releasing"] as const;

function world(right: number, phase: (typeof phases)[number]): World {
  return {
    ...{ seed: 1, hours: 2, replicas: 2 },
    nodes: ["a", "b", "c"].map((zone, at) => ({ zone, ageMinutes: 100 + 20 * at })),
    policy: {
      lifetime: { max: "3h", reserve: "30m" },
      spacing: { mode: "Late", min: "5m" },
      budgets: [{ nodes: 1 }],
      drain: { timeout: "5m", onTimeout: "RollBack" },
      instance: { release: "Recreate", awaitMachine: "10m" },
    },
    workloads: [
      {
        ...{ name: "app0", kind: "Deployment", replicas: 4, cpu: "100m" },
        ...{ graceSeconds: 60, exitSeconds: 20, maxUnavailable: 2 },
      },
    ],
    machines: { bootSeconds: 50, recreateSeconds: 10, stopSeconds: 20 },
    faults: [
      {
        ...{ kind: "right-removed", with: { right }, lasts: "ever" },
        start: { phase, nth: 1, afterSeconds: 0 },
      },
    ],
  };
}

/** What is done to a node differs by phase. */
const cases = rights.flatMap(({ verb, resource }, right) => {
  const its = resource === "nodes" ? phases : (["Draining"] as const);
  return its.map((phase) => [verb, resource, phase, right] as const);
});

it.each(cases)(
  "no rule is broken if it is removed for ever: %s %s in %s",
  async (_, __, phase, right) => {
    const { violations, departures } = await runWorld(world(right, phase));
    expect(departures).toBeGreaterThan(0);
    expect(violations.map(describeViolation)).toEqual([]);
  },
);
