import { expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, minus, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

/**
 * Seven nodes whose deadline has passed while a drain without end uses up the budget: each may
 * override it within the reserve, and the reserve has room for 84 s between them.
 */
const now = at("2026-11-20T02:06:00Z");
const deadlineAt = at("2026-11-20T02:05:00Z");
const policy = aPolicy({
  lifetime: { minMs: minutes(0), maxMs: hours(3), reserveMs: minutes(10) },
  spacing: { mode: "Late", minMs: minutes(5) },
  windows: [daily("02:00-03:30", { type: "Deny" })],
  budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
});
const born = (name: string): NodeFacts =>
  aNode(name, { createdAt: minus(plus(deadlineAt, minutes(10)), hours(3)) });
const held = Array.from({ length: 7 }, (_, index) => born(`n${index}`));
const waits = { phase: "Held", reason: "BudgetSpent" } as const;
const slow = born("slow");
const startedAt = at("2026-11-20T01:25:00Z");
const draining = aDeparture(slow, {
  departAt: startedAt,
  status: { phase: "Draining", startedAt },
});

function overridesWith(newcomers: readonly NodeFacts[]): readonly number[] {
  const departures = held.map((node, index) =>
    aDeparture(node, {
      ...{ deadlineAt, createdAt: at("2026-11-20T00:00:00Z"), status: waits },
      departAt: plus(startedAt, minutes(5 * (index + 1))),
    }),
  );
  const nodes = [slow, ...held, ...newcomers];
  const [made] = planFleet({
    ...{ policies: [policy], badPolicies: [], nodes, at: now },
    departures: [draining, ...departures],
  }).policies;
  const names = new Set(held.map(({ name }) => name));
  const found = (made?.departures ?? []).filter(({ node }) => names.has(node.name));
  return found.map(({ overridesBudgetAt }) => overridesBudgetAt).sort((a, b) => a - b);
}

const gapsOf = (instants: readonly number[]) =>
  instants.slice(1).map((one, index) => (one - (instants[index] ?? 0)) / 1000);

it("a queue uses the whole reserve to override its budget", () => {
  expect(Math.min(...gapsOf(overridesWith([])))).toBeGreaterThan(80);
});

it("a queue is not narrowed by nodes that must leave at one instant in closed hours", () => {
  const newcomers = ["a", "b"].map((name) =>
    aNode(name, { createdAt: minus(at("2026-11-20T03:00:00Z"), hours(2.5)) }),
  );
  expect(Math.min(...gapsOf(overridesWith(newcomers)))).toBeGreaterThan(80);
});
