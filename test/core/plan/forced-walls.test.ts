import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PlannedDeparture } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, minus, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

/**
 * Two nodes that had to leave in closed hours, 16 s apart, are held over their deadlines. The
 * windows are open again, three others have to leave by one instant, and one is overdue.
 */
const now = at("2026-11-20T04:00:00Z");
const policy = aPolicy({
  lifetime: { minMs: minutes(0), maxMs: hours(4), reserveMs: minutes(30) },
  spacing: { mode: "Late", minMs: minutes(10) },
  windows: [daily("02:00-03:55", { type: "Deny" })],
});
const born = (name: string, deadlineAt: ReturnType<typeof at>): NodeFacts =>
  aNode(name, { createdAt: minus(plus(deadlineAt, minutes(30)), hours(4)) });
const dueAt = at("2026-11-20T03:50:00Z");

function planned(): readonly PlannedDeparture[] {
  const forced = [0, 16].map((later, index) => {
    const deadlineAt = plus(dueAt, seconds(later));
    const node = born(`forced-${index}`, deadlineAt);
    const status = { phase: "Held", reason: "FleetUnhealthy" } as const;
    const createdAt = minus(now, hours(3));
    return {
      node,
      departure: aDeparture(node, { deadlineAt, departAt: deadlineAt, createdAt, status }),
    };
  });
  const free = [1, 2, 3].map((place) => born(`free-${place}`, plus(now, hours(2))));
  const overdue = born("overdue", minus(now, hours(2)));
  const [made] = planFleet({
    ...{ policies: [policy], badPolicies: [], at: now },
    nodes: [...forced.map(({ node }) => node), ...free, overdue],
    departures: forced.map(({ departure }) => departure),
  }).policies;
  return made?.departures ?? [];
}

describe("nodes that wait past their deadlines, seconds apart", () => {
  const departures = planned();
  const departAt = (name: string) =>
    departures.find(({ node }) => node.name === name)?.departAt ?? now;

  it("do not narrow the gaps of those that can choose their instants", () => {
    const free = [1, 2, 3].map((place) => departAt(`free-${place}`)).toSorted((a, b) => b - a);
    expect(free).toEqual([0, 10, 20].map((before) => plus(now, minutes(120 - before))));
  });

  it("do not let overdue nodes leave seconds apart", () => {
    const others = departures.filter(({ node }) => node.name !== "overdue");
    const apart = others.map((one) => Math.abs(one.departAt - departAt("overdue")));
    expect(Math.min(...apart)).toBeGreaterThanOrEqual(minutes(10));
  });
});
