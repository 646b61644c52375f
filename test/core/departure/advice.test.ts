import { describe, expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import { type Departure, isAdvice, isPressing } from "../../../src/core/departure/departure.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import {
  hours,
  type Instant,
  instant,
  millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, daily, everyMachine } from "../fleet-builder.ts";

const now = instant(Date.UTC(2026, 10, 20, 12));
const nodes = ["n1", "n2", "n3", "n4", "n5", "n6"].map((name) =>
  aNode(name, { createdAt: minus(now, hours(2)) }),
);

function spot(over: Partial<Policy> = {}): Policy {
  return aPolicy({
    lifetime: { minMs: millis(0), reserveMs: minutes(30) },
    onNotice: { spotInterruption: "Drain", rebalance: "Drain", maintenance: "Drain" },
    budgets: [{ kind: "Nodes", nodes: { count: 1 }, scope: "Policy" }],
    ...over,
  });
}

/** A departure for a rebalance recommendation, or another notice, for the node at `place`. */
function told(place: number, over: Partial<Departure> = {}): Departure {
  const node = nodes[place] ?? aNode("missing");
  return aDeparture(node, {
    ...{ cause: "RebalanceRecommendation", noticedAt: now, departAt: now },
    ...over,
  });
}

const maintenance = (place: number, deadlineAt: Instant) =>
  told(place, { cause: "ScheduledMaintenance", deadlineAt });

function scene(over: Partial<Snapshot> = {}): Snapshot {
  const nothing = { badPolicies: [], gateAnswers: {}, releaseAnswers: everyMachine };
  return { nodes, policies: [spot()], departures: [], ...nothing, ...over };
}

/** What is decided about departures, in short. */
function said(snapshot: Snapshot, at: Instant = now): readonly string[] {
  return decide(snapshot, at).decisions.flatMap((one) => {
    if (!("departure" in one) || typeof one.departure === "string") return [];
    const event = "event" in one ? ` ${one.event}` : "";
    return [`${one.departure.node.name} ${one.kind}${event} ${one.reason}`];
  });
}

describe("advice", () => {
  it.each([
    ["a recommendation", { cause: "RebalanceRecommendation" }, true],
    ["maintenance in 61 minutes", { cause: "ScheduledMaintenance", lead: minutes(61) }, true],
    ["maintenance in an hour", { cause: "ScheduledMaintenance", lead: minutes(60) }, false],
    ["maintenance without a time", { cause: "ScheduledMaintenance" }, false],
    ["a recommendation with an end", { cause: "RebalanceRecommendation", lead: minutes(9) }, false],
    ["an interruption", { cause: "SpotInterruption", lead: hours(9) }, false],
    ["a lifecycle hook", { cause: "LifecycleHook" }, false],
  ] as const)("is a notice that leaves time, %j: %j %j", (_, facts, isAdvised) => {
    const lead = "lead" in facts ? facts.lead : undefined;
    const deadlineAt = lead && plus(now, lead);
    const departure = told(0, { cause: facts.cause, deadlineAt });
    expect(isAdvice(departure, now)).toBe(isAdvised);
    expect(isPressing(departure, now)).toBe(!isAdvised);
  });

  it("does not include a planned departure without a notice", () => {
    const planned = told(0, { cause: "Planned", noticedAt: undefined });
    expect([isAdvice(planned, now), isPressing(planned, now)]).toEqual([false, false]);
  });
});

describe("six rebalance recommendations under a budget of one node", () => {
  const departures = nodes.map((_, place) => told(place));

  it("start one at a time", () => {
    expect(said(scene({ departures }))).toEqual(["n1 Begin Due Noticed"]);
    const begun = told(0, { status: { phase: "Draining", startedAt: now, timeline: [] } });
    expect(said(scene({ departures: [begun, ...departures.slice(1)] })).slice(1)).toEqual([
      "n2 Note Blocked BudgetSpent",
      "n3 Note Blocked BudgetSpent",
      "n4 Note Blocked BudgetSpent",
      "n5 Note Blocked BudgetSpent",
      "n6 Note Blocked BudgetSpent",
    ]);
  });

  it("get the policy's name and an instant first, so that its budgets and gates apply", () => {
    const bare = { policy: undefined, departAt: undefined };
    const [only] = decide(scene({ departures: [told(0, bare)] }), now).decisions;
    expect(only).toMatchObject({ kind: "Move", policy: "spot", departAt: now });
  });

  it("count towards the hourly budget", () => {
    const policies = [spot({ budgets: [{ kind: "PerHour", perHour: 1 }] })];
    const startedAt = minus(now, minutes(1));
    const left = told(0, {
      status: { phase: "Ended", outcome: "Preempted", startedAt, timeline: [] },
    });
    const standing = [left, told(1)];
    expect(said(scene({ policies, departures: standing }))).toEqual([
      "n2 Note Blocked BudgetSpent",
    ]);
  });

  it("do not use up the budget while they wait, so a requested departure may start", () => {
    const planned = aDeparture(nodes[5] ?? aNode("n6"), {
      ...{ cause: "Manual", name: "by-hand", uid: "by-hand", departAt: minus(now, seconds(1)) },
    });
    const waiting = departures.slice(0, 5).map((one) => ({
      ...one,
      status: { phase: "Held", reason: "BudgetSpent", timeline: [] } as const,
    }));
    expect(said(scene({ departures: [...waiting, planned] }))).toContain("n6 Begin Due Requested");
  });
});

describe("a rebalance recommendation", () => {
  it.each([
    ["a freeze", { gates: { blockingPods: [], freezeUntil: plus(now, hours(1)) } }, "Frozen"],
    ["a closed window", { windows: [daily("22:00-06:00")] }, "OutsideWindow"],
    ["a paused policy", { paused: true }, "PolicyPaused"],
    ["unknown alerts", { gates: { blockingPods: [], alerts: {} } }, "AlertsUnknown"],
  ])("is held by %s, for the same reason as a planned departure", (_, over, reason) => {
    const policies = [spot(over as Partial<Policy>)];
    expect(said(scene({ policies, departures: [told(0)] }))).toEqual([`n1 Note Blocked ${reason}`]);
  });

  it("waits for the previous wave", () => {
    const policies = [spot({ budgets: [], waves: { sizes: [{ count: 1 }, { count: 5 }] } })];
    const begun = told(0, { status: { phase: "Draining", startedAt: now, timeline: [] } });
    expect(said(scene({ policies, departures: [begun, told(1)] }))).toEqual([
      "n1 Continue Started",
      "n2 Note Blocked WaveWait",
    ]);
  });

  it("does not start if the policy ignores rebalance recommendations", () => {
    const onNotice = { ...spot().onNotice, rebalance: "Ignore" } as const;
    expect(said(scene({ policies: [spot({ onNotice })], departures: [told(0)] }))).toEqual([]);
  });

  it("starts without a release check, because the cloud takes the machine", () => {
    const verdict = decide(scene({ departures: [told(0)], releaseAnswers: new Map() }), now);
    expect(verdict.asks).toEqual([]);
    expect(verdict.decisions[0]).toMatchObject({ kind: "Begin" });
  });

  it("that waits does not hold up the planned departure of its node", () => {
    const lifetime = { minMs: millis(0), maxMs: hours(24), reserveMs: minutes(30) };
    const freezeUntil = plus(now, hours(48));
    const policies = [spot({ lifetime, gates: { blockingPods: [], freezeUntil } })];
    const born = minus(now, hours(23.5));
    const old = [aNode("n1", { createdAt: born })];
    const deadlineAt = now;
    const due = { name: "planned", uid: "planned", departAt: deadlineAt, deadlineAt };
    const planned = aDeparture(old[0] ?? aNode("n1"), { ...due, createdAt: born });
    const waiting = told(0, { status: { phase: "Held", reason: "Frozen", timeline: [] } });
    const found = said(scene({ nodes: old, policies, departures: [waiting, planned] }));
    expect(found).toContain("n1 Begin Due DeadlineForces");
  });

  it("that waits does not keep its node out of the plan", () => {
    const lifetime = { minMs: millis(0), maxMs: hours(24), reserveMs: minutes(30) };
    const freezeUntil = plus(now, hours(2));
    const policies = [spot({ lifetime, gates: { blockingPods: [], freezeUntil } })];
    const { decisions } = decide(
      scene({ nodes: nodes.slice(0, 1), policies, departures: [told(0)] }),
      now,
    );
    expect(decisions.map(({ kind }) => kind)).toContain("Schedule");
  });
});

describe("maintenance of a node that is already leaving as planned", () => {
  it("waits for that while there is time, because only that releases the machine", () => {
    const node = nodes[0] ?? aNode("n1");
    const status = { phase: "Draining", startedAt: now, timeline: [] } as const;
    const planned = aDeparture(node, { uid: "planned", status });
    const advice = (deadlineAt: Instant) => {
      const departures = [planned, maintenance(0, deadlineAt)];
      return said(scene({ departures })).filter((one) => one.startsWith("n1 Note"));
    };
    expect(advice(plus(now, hours(2)))).toEqual(["n1 Note Blocked Started"]);
    expect(advice(plus(now, minutes(59)))).toEqual([]);
  });
});

describe("maintenance with a known time", () => {
  const frozen = spot({ gates: { blockingPods: [], freezeUntil: plus(now, hours(48)) } });
  const beginsAt = plus(now, hours(3));
  const departure = maintenance(0, beginsAt);

  it("is held while it is more than an hour ahead, and checked again an hour before", () => {
    const verdict = decide(scene({ policies: [frozen], departures: [departure] }), now);
    expect(verdict.decisions[0]).toMatchObject({ kind: "Note", reason: "Frozen" });
    const held = {
      ...departure,
      status: { phase: "Held", reason: "Frozen", timeline: [] },
    } as const;
    const later = minus(beginsAt, seconds(3620));
    const again = decide(scene({ policies: [frozen], departures: [held] }), later);
    expect(again.askAgainAt).toBe(minus(beginsAt, hours(1)));
  });

  it("overrides gates and budgets from one hour before it starts", () => {
    const departures = nodes.map((_, place) => maintenance(place, beginsAt));
    const hourBefore = minus(beginsAt, hours(1));
    const begun = nodes.map(({ name }) => `${name} Begin Due DeadlineForces`);
    expect(said(scene({ policies: [frozen], departures }), hourBefore)).toEqual(begun);
  });
});

describe("an interruption", () => {
  it("is left out of the decisions about planned departures", () => {
    const cause = "SpotInterruption";
    const cut = told(1, { cause, deadlineAt: plus(now, minutes(2)) });
    expect(said(scene({ departures: [cut, told(0)] }))).toEqual(["n1 Note Blocked BudgetSpent"]);
  });
});
