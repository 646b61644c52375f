import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import {
  fleetHeadline,
  type HeadlineFacts,
  type HeadlineSubject,
  type OperationStanding,
} from "../../../src/core/plan/headline.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { inEnglish } from "../../../src/core/reason/english.ts";
import type { Reason } from "../../../src/core/reason/reason.ts";
import { hours, instant, minutes } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const nodes = [9, 10, 11].map((age) => aNode(`n${age}`, { createdAt: instant(now - hours(age)) }));
const [n9, n10, n11] = nodes as [NodeFacts, NodeFacts, NodeFacts];

interface World {
  readonly policies?: readonly Policy[];
  readonly departures?: readonly Departure[];
  readonly nodes?: readonly NodeFacts[];
}

function headline(world: World, more: Partial<HeadlineFacts> = {}) {
  const { policies = [aPolicy()], departures = [] } = world;
  const fleet = { policies, departures, nodes: world.nodes ?? nodes, badPolicies: [] };
  const plan = planFleet({ ...fleet, at: now });
  const lines = fleetHeadline({ ...fleet, plan, ...more });
  return (subject: HeadlineSubject) => lines.filter((one) => one.subject === subject);
}

const noneAhead = { says: { says: "headline.NoneAhead", until: undefined } };

/** The words are those of the tables in `core/reason`; `sentence-table.ts` reads them aloud. */
describe("the headline of a fleet", () => {
  it("says of a policy how many departures are late, as its condition does", () => {
    const all = Array.from({ length: 9 }, (_, place) =>
      aNode(`m${place}`, { createdAt: instant(now - minutes(23 * 60 + place)) }),
    );
    const policies = [aPolicy({ windows: [daily("22:00-22:05")] })];
    const [policy] = headline({ policies, nodes: all })("Policy");
    expect(policy).toMatchObject({ policy: "spot", tone: "Bad" });
    expect(policy?.says).toContainEqual({ says: "fleet.AllLate", departures: 9 });
  });

  it("names the next departure and its time", () => {
    expect(headline({})("Next")).toMatchObject([
      {
        tone: "Good",
        says: { says: "headline.Next", node: "n11", departAt: at("2026-11-21T00:30:00Z") },
      },
    ]);
  });

  it("names no next departure while a request that is due waits for a budget", () => {
    const waits = aDeparture(n9, {
      ...{ cause: "Manual", departAt: instant(now - hours(1)) },
      status: { phase: "Held", reason: "BudgetSpent" },
    });
    expect(headline({ departures: [waits] })("Next")).toEqual([]);
  });

  it("says of halted waves that a person has to continue them, and promises no departure", () => {
    const failed = aDeparture(aNode("n0"), {
      status: {
        ...{ phase: "Ended", outcome: "RolledBack" },
        ...{ startedAt: instant(now - hours(2)), endedAt: instant(now - hours(1)) },
      },
    });
    const policies = [aPolicy({ waves: { sizes: [{ count: 1 }, { count: 2 }] } })];
    const of = headline({ policies, departures: [failed] });
    const [policy] = of("Policy");
    expect(policy?.tone).toBe("Bad");
    expect(policy?.says).toMatchObject([
      { says: "fleet.Halted", departures: 3 },
      { says: "limit.WaveHalted", wave: 1, waves: 2 },
    ]);
    expect(of("Next")).toMatchObject([noneAhead]);
  });

  it("names the deadline that overrides a freeze, and not as the end of the freeze", () => {
    const freezeUntil = at("2027-01-01T00:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    // By the gap of the plan, one of two that have the same deadline would leave before it.
    const alike = [n11, { ...n11, name: "n12", uid: "u12" }];
    expect(headline({ policies, nodes: alike })("Next")).toMatchObject([
      {
        tone: "Good",
        says: {
          says: "headline.Next",
          node: expect.stringMatching(/^n1[12]$/),
          departAt: at("2026-11-21T00:30:00Z"),
        },
      },
    ]);
  });

  it("counts a departure at its deadline as forced by it, and not as on schedule as well", () => {
    const freezeUntil = at("2026-11-21T01:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [policy] = headline({ policies, nodes: [n10, n11] })("Policy");
    expect(policy && inEnglish(policy.says)).toMatch(
      /\. 1 of 2 departures is on schedule; .+ 1 departure \(n11\)/,
    );
  });

  it("names the end of a freeze that comes before the deadlines", () => {
    const freezeUntil = at("2026-11-20T20:00:00Z");
    const many = Array.from({ length: 60 }, (_, place) =>
      aNode(`m${place}`, { createdAt: instant(now - hours(11)) }),
    );
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [next] = headline({ policies, nodes: many })("Next");
    expect(next && inEnglish(next.says)).toContain(
      "before the freeze ends at 2026-11-20T20:00:00.000Z",
    );
  });

  it("promises no departure while the fleet is unhealthy", () => {
    const silent = nodes.map((node) => ({ ...node, ready: false }));
    expect(headline({ nodes: silent })("Next")).toMatchObject([noneAhead]);
  });

  it.each<[string, Partial<Policy>, object]>([
    ["paused", { paused: true }, { says: "fleet.Paused", nodes: 3 }],
    ["a dry run", { dryRun: true }, [{ says: "fleet.DryRunInTime", departures: 3 }]],
  ])("has no next departure if the only policy is %s", (_, more, says) => {
    const of = headline({ policies: [aPolicy(more)] });
    expect(of("Next")).toMatchObject([noneAhead]);
    expect(of("Policy")).toMatchObject([{ tone: "Note", says }]);
  });

  it("says that an unhealthy fleet lets nobody leave, and not that anybody is on schedule", () => {
    const silent = nodes.map((node) => ({ ...node, ready: false }));
    const [policy] = headline({ nodes: silent })("Policy");
    expect(policy).toMatchObject({
      tone: "Bad",
      says: {
        says: "fleet.Unhealthy",
        detail: expect.stringContaining("3 of 3 nodes"),
      },
    });
  });

  it("does not call a node held that is leaving already", () => {
    const held = { ...n9, annotations: { "lastcall.dev/hold": "true" } };
    const leaving = aDeparture(held, { status: { phase: "Draining", startedAt: now } });
    const of = headline({ nodes: [held, n10], departures: [leaving] });
    expect(of("Held")).toEqual([]);
    expect(of("Leaving")).toMatchObject([{ says: { says: "headline.Leaving", names: "n9" } }]);
  });

  it("does not call a policy that selects no node well", () => {
    expect(headline({ nodes: [] })("Policy")).toMatchObject([
      { tone: "Note", says: { says: "fleet.SelectsNone" } },
    ]);
  });

  it("expects nothing before the end of a freeze, and calls nothing that it holds on schedule", () => {
    const freezeUntil = at("2026-11-21T08:00:00Z");
    const lifetime = { minMs: hours(0), maxMs: hours(36), reserveMs: hours(0) };
    const frozen = aPolicy({ lifetime, spacing: { mode: "Even", minMs: minutes(15) } });
    const policies = [{ ...frozen, gates: { blockingPods: [], freezeUntil } }];
    const of = headline({ policies });
    expect(of("Next")).toMatchObject([
      {
        tone: "Note",
        says: { says: "headline.NoneAhead", until: freezeUntil },
      },
    ]);
    expect(of("Policy")[0]?.says).toMatchObject({
      says: "headline.Frozen",
      until: freezeUntil,
      rest: [
        { says: "fleet.SomeOnSchedule", some: 1, departures: 3 },
        { says: "fleet.FreezeHolds", until: freezeUntil, departures: 2 },
      ],
    });
  });

  it("says until when a policy is frozen", () => {
    const freezeUntil = at("2026-11-20T15:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [policy] = headline({ policies })("Policy");
    expect(policy).toMatchObject({
      tone: "Note",
      says: { says: "headline.Frozen", until: freezeUntil, rest: [{ departures: 3 }] },
    });
  });

  it("says what due departures wait for, the most frequent reason first", () => {
    const held = (node: NodeFacts, reason: "BudgetSpent" | "AlertsFiring") =>
      aDeparture(node, {
        departAt: instant(now - hours(1)),
        status: { phase: "Held", reason },
      });
    const departures = [
      held(n9, "AlertsFiring"),
      held(n10, "BudgetSpent"),
      held(n11, "BudgetSpent"),
    ];
    expect(headline({ departures })("Policy")).toMatchObject([
      {
        tone: "Note",
        waiting: [
          { reason: "BudgetSpent", departures: 2 },
          { reason: "AlertsFiring", departures: 1 },
        ],
      },
    ]);
  });

  it("does not say of a departure that it waits if another one of its node goes before", () => {
    const dueAt = { departAt: instant(now - hours(1)) };
    const held = (node: NodeFacts, over: Partial<Departure>, reason: Reason) =>
      aDeparture(node, { ...dueAt, ...over, status: { phase: "Held", reason } });
    const other = { cause: "Manual", name: "later", uid: "later" } as const;
    const departures = [
      held(n9, {}, "Requested"),
      held(n9, other, "BudgetSpent"),
      aDeparture(n10, { noticedAt: now, status: { phase: "Draining", timeline: [] } }),
      held(n10, other, "Started"),
    ];
    const waiting = [{ reason: "BudgetSpent", departures: 1 }];
    expect(headline({ departures })("Policy")).toMatchObject([{ tone: "Note", waiting }]);
  });

  it("says nothing of a freeze that has ended, also of those that were due before its end", () => {
    const gates = { blockingPods: [], freezeUntil: instant(now - minutes(10)) };
    const status = { phase: "Held", reason: "BudgetSpent" } as const;
    const budgets = [{ kind: "Nodes", nodes: { count: 1 }, scope: "Policy" }] as const;
    const of = headline({
      policies: [aPolicy({ gates, budgets })],
      departures: nodes.map((node) =>
        aDeparture(node, { departAt: instant(now - hours(1)), status }),
      ),
    });
    const said = [...of("Policy"), ...of("Next")].map(({ says }) => inEnglish(says)).join("\n");
    expect(said).not.toContain("freeze");
  });

  it("says who is leaving, and who of them on a notice", () => {
    const leaving = (node: NodeFacts, over: Partial<Departure> = {}) =>
      aDeparture(node, { ...over, status: { phase: "Draining", timeline: [] } });
    expect(headline({})("Leaving")).toMatchObject([{ says: { says: "headline.NoneLeaving" } }]);
    expect(headline({ departures: [leaving(n9)] })("Leaving")).toMatchObject([
      { tone: "Good", says: { says: "headline.Leaving", nodes: 1, names: "n9" } },
    ]);
    const noticed = leaving(n10, { cause: "SpotInterruption", noticedAt: now });
    expect(headline({ departures: [noticed] })("Leaving")).toMatchObject([
      { tone: "Note", says: { says: "headline.AllNoticed", nodes: 1, names: "n10" } },
    ]);
    const both = [noticed, leaving(n11, { cause: "SpotInterruption", noticedAt: now })];
    expect(headline({ departures: both })("Leaving")).toMatchObject([
      { says: { says: "headline.AllNoticed", nodes: 2, names: "n10, n11" } },
    ]);
    const departures = [leaving(n9), leaving(n10, { cause: "SpotInterruption", noticedAt: now })];
    expect(headline({ departures })("Leaving")).toMatchObject([
      { tone: "Note", says: { says: "headline.SomeNoticed", noticed: 1, names: "n9, n10" } },
    ]);
  });

  it("says how many nodes are held, and since when the longest", () => {
    const hold = (node: NodeFacts, since: number) => ({
      ...node,
      annotations: { "lastcall.dev/hold": "true" },
      holdWriter: { manager: "kubectl-annotate", at: instant(now - hours(since)) },
    });
    expect(headline({})("Held")).toEqual([]);
    expect(headline({ nodes: [hold(n9, 2), n10] })("Held")).toMatchObject([
      {
        says: {
          says: "headline.OnHold",
          nodes: 1,
          sinceAt: instant(now - hours(2)),
          names: "n9",
        },
      },
    ]);
    expect(headline({ nodes: [hold(n9, 2), hold(n10, 4), n11] })("Held")).toMatchObject([
      {
        tone: "Note",
        says: { nodes: 2, sinceAt: instant(now - hours(4)), names: "n9, n10" },
      },
    ]);
  });

  it("counts a node on hold once: as held, and not among the departures that wait", () => {
    const held = { ...n9, annotations: { "lastcall.dev/hold": "true" } };
    const due = { departAt: instant(now - hours(1)) };
    const departures = [
      aDeparture(held, { ...due, status: { phase: "Held", reason: "OnHold" } }),
      aDeparture(n10, { ...due, hold: true, status: { phase: "Held", reason: "HeldByPerson" } }),
    ];
    const of = headline({ nodes: [held, n10, n11], departures });
    expect(of("Policy")).toMatchObject([{ waiting: [] }]);
    expect(of("Held")).toMatchObject([{ says: { nodes: 2, names: "n9, n10" } }]);
  });

  it("counts a node that is on hold until an instant, and says it if it is that of all", () => {
    const holdUntil = (node: NodeFacts, untilAt: string) => ({
      ...node,
      annotations: { "lastcall.dev/hold": untilAt },
      holdWriter: { manager: "lastcall", at: instant(now - hours(1)) },
    });
    const says = (...world: readonly NodeFacts[]) =>
      headline({ nodes: world })("Held").map((one) => inEnglish(one.says));
    const [two, three] = ["2026-11-20T14:00:00Z", "2026-11-20T15:00:00Z"];
    expect(says(holdUntil(n9, two), holdUntil(n10, two), n11)).toEqual([
      "2 nodes are on hold until 2026-11-20T14:00:00.000Z (n9, n10)",
    ]);
    expect(says(holdUntil(n9, two), holdUntil(n10, three), n11)).toEqual([
      "2 nodes are on hold, the longest since 2026-11-20T11:00:00.000Z (n9, n10)",
    ]);
    expect(says(holdUntil(n9, "2026-11-20T12:00:00Z"))).toEqual([]);
  });

  it("does not say that nothing is there where it may not be read", () => {
    const of = headline({ policies: [] }, { unread: ["policies", "departures"] });
    expect(of("Policy")).toMatchObject([{ says: { says: "headline.PoliciesUnread" } }]);
    expect(of("Leaving")).toMatchObject([{ says: { says: "headline.DeparturesUnread" } }]);
    expect(of("Next")).toEqual([]);
    expect(headline({ policies: [] })("Policy")).toMatchObject([{ tone: "Bad" }]);
    expect(headline({}, { unread: ["departures"] })("Policy")).toMatchObject([
      { tone: "Note", says: { says: "headline.DeparturesUnread" }, policy: "spot" },
    ]);
  });

  const renewedAt = at("2026-11-20T11:00:00Z");

  it.each<[OperationStanding["controller"], string, object]>([
    [{ kind: "Leads", holder: "a" }, "Good", { says: "headline.Leads", holder: "a" }],
    [
      { kind: "Expired", holder: "a", renewedAt },
      "Bad",
      { says: "headline.NotRenewed", holder: "a", renewedAt },
    ],
    [{ kind: "Unreadable" }, "Note", { says: "headline.LeaseUnread" }],
  ])("says whether a controller leads: %o", (controller, tone, says) => {
    const operation = { controller, agents: { kind: "Found", ready: 11, wanted: 12 } } as const;
    const of = headline({}, { operation });
    expect(of("Controller")).toMatchObject([{ tone, says }]);
    expect(of("Agents")).toMatchObject([
      { tone: "Bad", says: { says: "headline.AgentsMissing", ready: 11, wanted: 12 } },
    ]);
  });
});
