import { expect, it } from "vitest";
import { hours, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aPolicy, at } from "../fleet-builder.ts";

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
