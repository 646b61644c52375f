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

/** A recommendation for the node of that place, or what else the cloud has said. */
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

describe("what the cloud advises", () => {
  it.each([
    ["a recommendation", { cause: "RebalanceRecommendation" }, true],
    ["maintenance in 61 minutes", { cause: "ScheduledMaintenance", lead: minutes(61) }, true],
    ["maintenance in an hour", { cause: "ScheduledMaintenance", lead: minutes(60) }, false],
    ["maintenance that names no time", { cause: "ScheduledMaintenance" }, false],
    ["a recommendation with an end", { cause: "RebalanceRecommendation", lead: minutes(9) }, false],
    ["an interruption", { cause: "SpotInterruption", lead: hours(9) }, false],
    ["a lifecycle hook", { cause: "LifecycleHook" }, false],
  ] as const)("has time to choose its instant, %j: %j %j", (_, facts, isAdvised) => {
    const lead = "lead" in facts ? facts.lead : undefined;
    const deadlineAt = lead && plus(now, lead);
    const departure = told(0, { cause: facts.cause, deadlineAt });
    expect(isAdvice(departure, now)).toBe(isAdvised);
    expect(isPressing(departure, now)).toBe(!isAdvised);
  });

  it("is no matter of a plan's or a person's departure that nobody has noticed", () => {
    const planned = told(0, { cause: "Planned", noticedAt: undefined });
    expect([isAdvice(planned, now), isPressing(planned, now)]).toEqual([false, false]);
  });
});

describe("six recommendations and a budget of one node", () => {
  const departures = nodes.map((_, place) => told(place));

  it("begin one at a time", () => {
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

  it("get the policy's name and their instant first, so that its budgets and gates know of them", () => {
    const bare = { policy: undefined, departAt: undefined };
    const [only] = decide(scene({ departures: [told(0, bare)] }), now).decisions;
    expect(only).toMatchObject({ kind: "Move", policy: "spot", departAt: now });
  });

  it("count as starts of the hour", () => {
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

  it("take no place in the budget while they wait: a planned one may go meanwhile", () => {
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

describe("a recommendation", () => {
  it.each([
    ["a freeze", { gates: { blockingPods: [], freezeUntil: plus(now, hours(1)) } }, "Frozen"],
    ["a closed window", { windows: [daily("22:00-06:00")] }, "OutsideWindow"],
    ["a paused policy", { paused: true }, "PolicyPaused"],
    ["alerts that are not known", { gates: { blockingPods: [], alerts: {} } }, "AlertsUnknown"],
  ])("is held by %s, for the reason for which a planned departure is", (_, over, reason) => {
    const policies = [spot(over as Partial<Policy>)];
    expect(said(scene({ policies, departures: [told(0)] }))).toEqual([`n1 Note Blocked ${reason}`]);
  });

  it("waits for the wave before it, and is one of its wave", () => {
    const policies = [spot({ budgets: [], waves: { sizes: [{ count: 1 }, { count: 5 }] } })];
    const begun = told(0, { status: { phase: "Draining", startedAt: now, timeline: [] } });
    expect(said(scene({ policies, departures: [begun, told(1)] }))).toEqual([
      "n1 Continue Started",
      "n2 Note Blocked WaveWait",
    ]);
  });

  it("is left to the policy's reaction where that leaves the node at work", () => {
    const onNotice = { ...spot().onNotice, rebalance: "Ignore" } as const;
    expect(said(scene({ policies: [spot({ onNotice })], departures: [told(0)] }))).toEqual([]);
  });

  it("asks no cloud whether the machine can be released: the cloud takes it", () => {
    const verdict = decide(scene({ departures: [told(0)], releaseAnswers: new Map() }), now);
    expect(verdict.asks).toEqual([]);
    expect(verdict.decisions[0]).toMatchObject({ kind: "Begin" });
  });

  it("that waits leaves the planned departure of its node as it is", () => {
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

  it("that waits does not keep its node from being planned", () => {
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

describe("maintenance of a node that leaves by the plan already", () => {
  it("is left to that while there is time, since the machine would be left to the cloud with it", () => {
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

describe("maintenance whose time is known", () => {
  const frozen = spot({ gates: { blockingPods: [], freezeUntil: plus(now, hours(48)) } });
  const beginsAt = plus(now, hours(3));
  const departure = maintenance(0, beginsAt);

  it("is held while it is more than an hour ahead, and is looked at again an hour before", () => {
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

  it("goes past gates and budgets from one hour before it begins", () => {
    const departures = nodes.map((_, place) => maintenance(place, beginsAt));
    const hourBefore = minus(beginsAt, hours(1));
    const begun = nodes.map(({ name }) => `${name} Begin Due DeadlineForces`);
    expect(said(scene({ policies: [frozen], departures }), hourBefore)).toEqual(begun);
  });
});

describe("an interruption", () => {
  it("is not the planned side's, whatever waits", () => {
    const cause = "SpotInterruption";
    const cut = told(1, { cause, deadlineAt: plus(now, minutes(2)) });
    expect(said(scene({ departures: [cut, told(0)] }))).toEqual(["n1 Note Blocked BudgetSpent"]);
  });
});
