import { expect, it } from "vitest";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { policyStatuses } from "../../../src/core/plan/plan-status.ts";
import { hours, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const nodes = ["n1", "n2"].map((name) => aNode(name, { createdAt: plus(now, hours(-1)) }));
const [n1 = aNode("n1"), n2 = aNode("n2")] = nodes;
const departAt = plus(now, hours(20));

function countOf(departures: readonly Departure[]) {
  const plan = planFleet({ policies: [aPolicy()], badPolicies: [], departures, nodes, at: now });
  const [status] = policyStatuses(plan, departures);
  return [status?.departures.scheduled, status?.matchedNodes];
}

it.each<[string, readonly Departure[], number]>([
  [
    "each node that has a departure to come",
    [aDeparture(n1, { departAt }), aDeparture(n2, { departAt })],
    2,
  ],
  ["a requested departure", [aDeparture(n1, { departAt, cause: "Manual" })], 1],
  [
    "a node once that is planned and requested",
    [
      aDeparture(n1, { departAt }),
      aDeparture(n1, { departAt, name: "n1-2", uid: "d2", cause: "Manual" }),
    ],
    1,
  ],
  [
    "no node that is gone",
    [aDeparture(n1, { departAt }), aDeparture(aNode("n0"), { departAt })],
    1,
  ],
  ["no departure under way", [aDeparture(n1, { departAt, status: { phase: "Draining" } })], 0],
])("a policy's status counts %s", (_, departures, scheduled) => {
  expect(countOf(departures)).toEqual([scheduled, 2]);
});
