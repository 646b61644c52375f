import { expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Decision } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { withoutEarlyMoves } from "../../../src/core/plan/late-move.ts";
import type { Pass } from "../../../src/core/plan/pass.ts";
import { hours, millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

/** Nine nodes that are overdue, and leave one after another; each drain outlasts some gaps. */
function overdueFleet(drainMs: () => number): DecideRun {
  return new DecideRun({
    policy: aPolicy({
      budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
      spacing: { mode: "Even", minMs: seconds(1) },
    }),
    startAt: at("2026-11-20T12:00:00Z"),
    agesMs: Array.from({ length: 9 }, () => hours(30)),
    drainMs,
    replaces: true,
  });
}

it.each([
  [seconds(1)],
  [seconds(2)],
  [seconds(3)],
  [seconds(5)],
  [seconds(10)],
  [seconds(40)],
  [minutes(2)],
])("no overdue node overtakes another while one drains for %i ms", (drainMs) => {
  const run = overdueFleet(() => drainMs);
  run.step();
  const inTurn = run.departures
    .toSorted((a, b) => (a.departAt ?? 0) - (b.departAt ?? 0))
    .map(({ node }) => node.name);
  run.until(plus(run.now, hours(1)));
  expect(run.begun.map(({ departure }) => departure.node.name)).toEqual(inTurn);
});

it("a node behind one that the fleet's health holds is moved once per gap", () => {
  const run = new DecideRun({
    policy: aPolicy({ spacing: { mode: "Late", minMs: minutes(3) } }),
    startAt: at("2026-11-20T12:00:00Z"),
    agesMs: [hours(24), hours(24), hours(25)],
    ...{ drainMs: () => minutes(1), replaces: true },
  });
  run.nodes = run.nodes.map((node) => ({ ...node, ready: false }));
  const [first, second] = run.nodes as [NodeFacts, NodeFacts];
  const dueAt = at("2026-11-20T11:30:00Z");
  // One that was drained in vain has started less than a gap after the instant of the other.
  const startedAt = at("2026-11-20T11:31:00Z");
  const endedAt = at("2026-11-20T11:33:00Z");
  const vain = { phase: "Ended", outcome: "RolledBack", startedAt, endedAt, timeline: [] } as const;
  const held = { phase: "Held", reason: "FleetUnhealthy", timeline: [] } as const;
  const planned = { departAt: dueAt, deadlineAt: dueAt, policy: "spot" };
  run.departures = [
    aDeparture(first, { ...planned, status: vain }),
    aDeparture(second, { ...planned, status: held }),
  ];
  run.until(plus(run.now, hours(1)));
  expect(run.begun).toEqual([]);
  // Twenty gaps pass, and two nodes are behind.
  expect(run.moves.length).toBeLessThanOrEqual(42);
});

it.each([
  ["waits for its turn", minutes(10), ["Move"]],
  ["is expected to start now", minutes(-1), []],
])("the others of a policy move while one that is due %s, or not", (_, beginIn, expected) => {
  const now = at("2026-11-20T12:00:00Z");
  const [due, ahead] = [aNode("due"), aNode("ahead")];
  const policy = aPolicy();
  const entry = { departAt: plus(now, minutes(-30)), beginAt: plus(now, beginIn) };
  const departures = [
    aDeparture(due, { departAt: entry.departAt, policy: policy.name }),
    aDeparture(ahead, { departAt: plus(now, minutes(1)), policy: policy.name }),
  ];
  const pass = {
    ...{ now, begun: new Set(), leaving: new Set(), snapshot: { departures } },
    planned: new Map([[due.uid, { entry, policy }]]),
  } as unknown as Pass;
  const move: Decision = {
    ...{ kind: "Move", departure: departures[1] as Departure, departAt: plus(now, minutes(2)) },
    ...{ policy: policy.name, reason: "Spaced", explain: "" },
  };
  expect(withoutEarlyMoves([move], pass).map(({ kind }) => kind)).toEqual(expected);
});

it("nodes move apart after a start, also beside some that wait for their turn", () => {
  const lifetime = { minMs: millis(0), maxMs: hours(2), reserveMs: minutes(30) };
  const windows = [daily("10:00-11:30", { type: "Deny" })];
  const healthyAt = at("2026-11-20T12:00:00Z");
  const startAt = plus(healthyAt, minutes(-60));
  // When healthy again, four have outlived their lifetime, and the last one does in 73 seconds.
  const outlived = [44, 28, 19, 4, -11, -37, -53, -73].map((past) => hours(2) + past * 1000);
  const run = new DecideRun({
    policy: aPolicy({ lifetime, windows, spacing: { mode: "Late", minMs: minutes(10) } }),
    ...{ startAt, agesMs: outlived.map((ageMs) => millis(ageMs - minutes(60))) },
    ...{ drainMs: () => seconds(5), replaces: false },
  });
  const nodes = run.nodes;
  run.nodes = nodes.map((node) => ({ ...node, ready: false }));
  run.until(healthyAt);
  run.nodes = nodes;
  run.until(plus(healthyAt, minutes(2)));
  const starts = run.begun.map((one) => Math.floor((one.at - healthyAt) / 1000));
  expect(starts).toEqual([0, 11, 31, 52, 72]);
});
