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
import { hours, instant, minutes } from "../../../src/core/time/time.ts";
import { translated } from "../../../src/web/words/translated.ts";
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
  return (subject: HeadlineSubject) =>
    lines
      .filter((one) => one.subject === subject)
      .map(({ says, ...line }) => ({ ...line, text: inEnglish(says) }));
}

describe("the headline of a fleet", () => {
  it("says of a policy how many departures are late, as its condition does", () => {
    const all = Array.from({ length: 9 }, (_, place) =>
      aNode(`m${place}`, { createdAt: instant(now - minutes(23 * 60 + place)) }),
    );
    const policies = [aPolicy({ windows: [daily("22:00-22:05")] })];
    const [policy] = headline({ policies, nodes: all })("Policy");
    expect(policy).toMatchObject({ policy: "spot", tone: "Bad" });
    expect(policy?.text).toMatch(/^All 9 departures are late/);
  });

  it("names the next departure and its time", () => {
    expect(headline({})("Next")).toMatchObject([
      { tone: "Good", text: "n11 leaves at 2026-11-21T00:30:00.000Z" },
    ]);
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
    expect(policy?.text).toMatch(
      /^No departure starts before its deadline; wave 1 of 2 is halted, /,
    );
    expect(of("Next")).toMatchObject([{ text: "No departure is ahead" }]);
    expect(translated(policy?.text ?? "", "ja")).toMatch(/^どの出発も期限まで始まりません/);
  });

  it("names the deadline that overrides a freeze, and not as the end of the freeze", () => {
    const freezeUntil = at("2027-01-01T00:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    // By the gap of the plan, one of two that have the same deadline would leave before it.
    const alike = [n11, { ...n11, name: "n12", uid: "u12" }];
    expect(headline({ policies, nodes: alike })("Next")).toMatchObject([
      { tone: "Good", text: expect.stringMatching(/^n1[12] leaves at 2026-11-21T00:30:00.000Z$/) },
    ]);
  });

  it("counts a departure at its deadline as forced by it, and not as on schedule as well", () => {
    const freezeUntil = at("2026-11-21T01:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [policy] = headline({ policies, nodes: [n10, n11] })("Policy");
    expect(policy?.text).toMatch(/\. 1 of 2 departures is on schedule; .+ 1 departure \(n11\)/);
  });

  it("names the end of a freeze that comes before the deadlines", () => {
    const freezeUntil = at("2026-11-20T20:00:00Z");
    const many = Array.from({ length: 60 }, (_, place) =>
      aNode(`m${place}`, { createdAt: instant(now - hours(11)) }),
    );
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [next] = headline({ policies, nodes: many })("Next");
    expect(next?.text).toContain("before the freeze ends at 2026-11-20T20:00:00.000Z");
  });

  it("promises no departure while the fleet is unhealthy", () => {
    const silent = nodes.map((node) => ({ ...node, ready: false }));
    expect(headline({ nodes: silent })("Next")).toMatchObject([{ text: "No departure is ahead" }]);
  });

  it.each<[string, Partial<Policy>, string]>([
    ["paused", { paused: true }, "The policy is paused: 3 nodes without a departure time"],
    [
      "a dry run",
      { dryRun: true },
      "Dry run: 3 departures would be on schedule, and no node leaves",
    ],
  ])("has no next departure if the only policy is %s", (_, more, text) => {
    const of = headline({ policies: [aPolicy(more)] });
    expect(of("Next")).toMatchObject([{ text: "No departure is ahead" }]);
    expect(of("Policy")).toMatchObject([{ tone: "Note", text }]);
  });

  it("says that an unhealthy fleet lets nobody leave, and not that anybody is on schedule", () => {
    const silent = nodes.map((node) => ({ ...node, ready: false }));
    const [policy] = headline({ nodes: silent })("Policy");
    expect(policy).toMatchObject({
      tone: "Bad",
      text: "No voluntary departure starts, because the fleet is unhealthy: 3 of 3 nodes of the policy spot are not Ready",
    });
  });

  it("does not call a node held that is leaving already", () => {
    const held = { ...n9, annotations: { "lastcall.dev/hold": "true" } };
    const leaving = aDeparture(held, { status: { phase: "Draining", startedAt: now } });
    const of = headline({ nodes: [held, n10], departures: [leaving] });
    expect(of("Held")).toEqual([]);
    expect(of("Leaving")[0]?.text).toBe("1 node is leaving now (n9)");
  });

  it("does not call a policy that selects no node well", () => {
    expect(headline({ nodes: [] })("Policy")).toMatchObject([
      { tone: "Note", text: expect.stringMatching(/^It selects no node/) },
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
        text: "No departure is ahead before the freeze ends at 2026-11-21T08:00:00.000Z",
      },
    ]);
    expect(of("Policy")[0]?.text).toBe(
      "Frozen until 2026-11-21T08:00:00.000Z. 1 of 3 departures is on schedule; the freeze until 2026-11-21T08:00:00.000Z holds back 2 departures",
    );
  });

  it("says until when a policy is frozen", () => {
    const freezeUntil = at("2026-11-20T15:00:00Z");
    const policies = [aPolicy({ gates: { blockingPods: [], freezeUntil } })];
    const [policy] = headline({ policies })("Policy");
    expect(policy?.tone).toBe("Note");
    expect(policy?.text).toMatch(/^Frozen until 2026-11-20T15:00:00\.000Z\. All 3 departures /);
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

  it("says who is leaving, and who of them on a notice", () => {
    const leaving = (node: NodeFacts, over: Partial<Departure> = {}) =>
      aDeparture(node, { ...over, status: { phase: "Draining", timeline: [] } });
    expect(headline({})("Leaving")).toMatchObject([{ text: "No node is leaving now" }]);
    expect(headline({ departures: [leaving(n9)] })("Leaving")).toMatchObject([
      { tone: "Good", text: "1 node is leaving now (n9)" },
    ]);
    const noticed = leaving(n10, { cause: "SpotInterruption", noticedAt: now });
    expect(headline({ departures: [noticed] })("Leaving")).toMatchObject([
      { tone: "Note", text: "1 node is leaving now, on a notice (n10)" },
    ]);
    const both = [noticed, leaving(n11, { cause: "SpotInterruption", noticedAt: now })];
    expect(headline({ departures: both })("Leaving")).toMatchObject([
      { text: "2 nodes are leaving now, both on a notice (n10, n11)" },
    ]);
    const departures = [leaving(n9), leaving(n10, { cause: "SpotInterruption", noticedAt: now })];
    expect(headline({ departures })("Leaving")).toMatchObject([
      { tone: "Note", text: "2 nodes are leaving now, 1 of them on a notice (n9, n10)" },
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
      { text: "1 node is on hold since 2026-11-20T10:00:00.000Z (n9)" },
    ]);
    expect(headline({ nodes: [hold(n9, 2), hold(n10, 4), n11] })("Held")).toMatchObject([
      {
        tone: "Note",
        text: "2 nodes are on hold, the longest since 2026-11-20T08:00:00.000Z (n9, n10)",
      },
    ]);
  });

  it("does not say that nothing is there where it may not be read", () => {
    const of = headline({ policies: [] }, { unread: ["policies", "departures"] });
    expect(of("Policy")).toMatchObject([{ text: "The policies cannot be read" }]);
    expect(of("Leaving")).toMatchObject([{ text: "The departures cannot be read" }]);
    expect(of("Next")).toEqual([]);
    expect(headline({ policies: [] })("Policy")).toMatchObject([{ tone: "Bad" }]);
    expect(headline({}, { unread: ["departures"] })("Policy")).toMatchObject([
      { tone: "Note", text: "The departures cannot be read", policy: "spot" },
    ]);
  });

  it.each<[OperationStanding["controller"], string, string]>([
    [{ kind: "Leads", holder: "lastcall-1" }, "Good", "lastcall-1 leads"],
    [
      { kind: "Expired", holder: "lastcall-1", renewedAt: at("2026-11-20T11:00:00Z") },
      "Bad",
      "No controller leads and nothing starts: lastcall-1 has not renewed its Lease since 2026-11-20T11:00:00.000Z",
    ],
    [{ kind: "Unreadable" }, "Note", "Whether a controller leads may not be read"],
  ])("says whether a controller leads: %o", (controller, tone, text) => {
    const operation = { controller, agents: { kind: "Found", ready: 11, wanted: 12 } } as const;
    const of = headline({}, { operation });
    expect(of("Controller")).toMatchObject([{ tone, text }]);
    expect(of("Agents")).toMatchObject([
      { tone: "Bad", text: "11 of 12 are ready: a notice may be missed" },
    ]);
  });
});
