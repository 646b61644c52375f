import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { policyStatuses } from "../../../src/core/plan/plan-status.ts";
import type { BadPolicy, Policy } from "../../../src/core/policy/policy.ts";
import { hours, instant } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const selects = (pool: string) => ({
  nodeSelectorTerms: [
    {
      matchExpressions: [{ key: "pool", operator: "In", values: [pool] } as const],
      matchFields: [],
    },
  ],
});
const nodes = ["a", "a", "b"].map((pool, place) =>
  aNode(`n${place}`, {
    createdAt: instant(now - hours(10)),
    labels: { "cloud.google.com/gke-spot": "true", pool },
  }),
);
const problem = 'spec.windows[0].timeZone: found "Local", expected an IANA time zone';

function statuses(world: {
  readonly policies?: readonly Policy[];
  readonly badPolicies?: readonly BadPolicy[];
  readonly departures?: readonly Departure[];
}) {
  const { policies = [aPolicy()], badPolicies = [], departures = [] } = world;
  const plan = planFleet({ policies, badPolicies, departures, nodes, at: now });
  return policyStatuses(plan, departures).map(({ conditions, ...status }) => ({
    ...status,
    conditions: Object.fromEntries(conditions.map(({ type, ...one }) => [type, one])),
  }));
}

it("a status belongs to one object: a policy recreated under the same name has none yet", () => {
  const badPolicies = [{ name: "odd", problem, uid: "second" }];
  const uids = statuses({ policies: [aPolicy({ uid: "first" })], badPolicies }).map(
    ({ uid }) => uid,
  );
  expect(uids).toEqual(["first", "second"]);
});

describe("a policy that cannot be read", () => {
  const bad = { name: "odd", problem, weight: 5, nodeSelector: selects("a"), generation: 2 };

  it("is reported in its own status, and in that of the policy whose nodes it holds back", () => {
    const [spot, odd] = statuses({ badPolicies: [bad] });
    expect(odd).toMatchObject({
      ...{ name: "odd", generation: 2, matchedNodes: 2, forecast: { feasible: false } },
      conditions: {
        Ready: { status: "False", reason: "Invalid", message: problem },
        Feasible: { status: "False", reason: "PolicyInvalid" },
      },
    });
    expect(spot).toMatchObject({
      ...{ matchedNodes: 3, forecast: { feasible: false } },
      conditions: {
        Ready: { status: "True", reason: "Understood" },
        Feasible: { status: "False", reason: "PolicyInvalid" },
      },
    });
    expect(spot?.conditions.Feasible?.message).toBe(
      `2 nodes are held back, because a policy that might own them cannot be read: odd: ${problem}. The departure is on schedule`,
    );
  });

  it("does not affect the status of others if it holds back no nodes", () => {
    const [spot, odd] = statuses({ badPolicies: [{ ...bad, nodeSelector: selects("c") }] });
    expect(odd).toMatchObject({ matchedNodes: 0, conditions: { Ready: { status: "False" } } });
    expect(spot).toMatchObject({ conditions: { Feasible: { status: "True", reason: "InTime" } } });
  });

  it("still counts its recorded departures", () => {
    const departures = [aDeparture(nodes[0] as (typeof nodes)[number], { policy: "odd" })];
    const [, odd] = statuses({ badPolicies: [bad], departures });
    expect(odd?.departures).toEqual({ scheduled: 1, underWay: 0, done24h: 0 });
  });
});

describe("a paused policy", () => {
  it("is reported as paused, and its feasibility as unknown", () => {
    const [spot] = statuses({ policies: [aPolicy({ paused: true })] });
    expect(spot).toMatchObject({
      ...{ paused: true, matchedNodes: 3, forecast: { feasible: false } },
      conditions: {
        Ready: { status: "True", reason: "Paused" },
        Feasible: { status: "Unknown", reason: "Paused" },
      },
    });
    expect(statuses({})[0]).toMatchObject({
      paused: false,
      conditions: { Ready: { reason: "Understood" }, Feasible: { status: "True" } },
    });
  });

  it("counts the nodes that it selects, which no longer count for the other policy", () => {
    const heavy = aPolicy({ name: "heavy", weight: 1, paused: true, nodeSelector: selects("a") });
    const counts = statuses({ policies: [aPolicy(), heavy] }).map((one) => one.matchedNodes);
    expect(counts).toEqual([2, 1]);
  });
});

describe("the forecast of a policy", () => {
  const message = (departures: readonly Departure[], policy: Partial<Policy> = {}) =>
    statuses({ policies: [aPolicy(policy)], departures })[0]?.conditions.Feasible?.message;
  const [first, second] = nodes as [NodeFacts, NodeFacts];

  it("does not count a departure as on schedule that a person or a gate holds back", () => {
    const byPerson = aDeparture(first, { hold: true, departAt: instant(now + hours(1)) });
    const byGate = aDeparture(second, {
      departAt: instant(now - hours(1)),
      status: { phase: "Held", reason: "AlertsFiring" },
    });
    expect(message([])).toBe("All 3 departures are on schedule");
    expect(message([byPerson])).toBe("2 of 3 departures are on schedule, 1 departure is held back");
    expect(message([byPerson, byGate])).toBe(
      "1 of 3 departures is on schedule, 2 departures are held back",
    );
  });

  it("promises nothing in a dry run", () => {
    expect(message([], { dryRun: true })).toBe(
      "Dry run: 3 departures would be on schedule, and no node leaves",
    );
    const gates = { blockingPods: [], freezeUntil: instant(now + hours(72)) };
    expect(message([], { dryRun: true, gates })).toBe(
      "Dry run: 3 departures would be on schedule, and no node leaves; the freeze until 2026-11-23T12:00:00.000Z ends after the deadlines of 3 departures (n0, n1, n2), which would leave at their deadlines",
    );
  });
});

it("a policy that selects no node is not said to be in time", () => {
  const [spot] = statuses({ policies: [aPolicy({ nodeSelector: selects("none") })] });
  expect(spot).toMatchObject({
    ...{ matchedNodes: 0, forecast: { feasible: false } },
    conditions: {
      Ready: { status: "True", reason: "Understood" },
      Feasible: {
        ...{ status: "Unknown", reason: "NoNodes" },
        message: "It selects no node: compare its nodeSelector with the labels of the nodes",
      },
    },
  });
});

it.each([
  ["b", "the 1 node"],
  ["a", "the 2 nodes"],
])(
  "a policy is not said to select no node if another one takes those of pool %s",
  (pool, those) => {
    const policies = [
      aPolicy({ name: "heavy", weight: 1, nodeSelector: selects(pool) }),
      aPolicy({ name: "spot", nodeSelector: selects(pool) }),
    ];
    const found = statuses({ policies }).find(({ name }) => name === "spot");
    expect(found?.conditions.Feasible).toMatchObject({
      ...{ status: "Unknown", reason: "NoNodes" },
      message: `It applies to no node: policies of more weight or of an earlier name apply to ${those} that it selects`,
    });
  },
);
