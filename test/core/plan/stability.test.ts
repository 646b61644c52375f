import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import type { PlanInput } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import {
  between,
  formatInstant,
  hours,
  type Instant,
  instant,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

interface Fleet {
  readonly nodes: readonly NodeFacts[];
  readonly policy?: Policy;
  readonly departures?: readonly Departure[];
  readonly atInstant?: Instant;
}

function plan({ nodes, policy = aPolicy(), departures = [], atInstant = now }: Fleet) {
  const input: PlanInput = {
    policies: [policy],
    badPolicies: [],
    nodes,
    departures,
    at: atInstant,
  };
  const [made] = planFleet(input).policies;
  if (made === undefined) throw new Error("the policy has a plan");
  return made;
}

/** The plan as the cluster stores it: one Departure per node. */
function kept(made: ReturnType<typeof plan>): readonly Departure[] {
  return made.departures.map(({ node, departAt }) => aDeparture(node, { departAt }));
}

function departs(made: ReturnType<typeof plan>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    made.departures.map(({ node, departAt }) => [node.name, formatInstant(departAt)]),
  );
}

/** A node whose deadline is so many minutes from now. */
function leftMinutes(name: string, count: number): NodeFacts {
  return aNode(name, { createdAt: instant(now - minutes(23 * 60 + 30 - count)) });
}

function randomNodes(count: number): readonly NodeFacts[] {
  const rng = seededRng(count);
  return Array.from({ length: count }, (_, i) =>
    aNode(`n${i}`, { createdAt: instant(now - Math.floor(rng() * hours(20))) }),
  );
}

const late = aPolicy();
const even = aPolicy({ spacing: { mode: "Even", minMs: minutes(15) } });

describe("a stored plan", () => {
  it.each([
    ["Late", late],
    ["Even", even],
  ])("stays the same after a restart in mode %s", (_, policy) => {
    const nodes = randomNodes(40);
    const first = plan({ nodes, policy });
    const again = plan({ nodes, policy, departures: kept(first) });
    expect(departs(again)).toEqual(departs(first));
    expect(again.moved).toBe(0);
  });

  it.each([
    ["Late", late],
    ["Even", even],
  ])("stays the same minutes later in mode %s, while no departure is due", (_, policy) => {
    const nodes = randomNodes(10).filter((node) => (node.createdAt ?? 0) > now - hours(12));
    const first = plan({ nodes, policy });
    // In Even the first leaves at once, so it is under way at the next pass.
    const departures = kept(first).map((one) =>
      one.departAt === now
        ? aDeparture(nodes.find(({ uid }) => uid === one.node.uid) as NodeFacts, {
            status: { phase: "Draining", startedAt: now },
          })
        : one,
    );
    const again = plan({ nodes, policy, departures, atInstant: plus(now, minutes(7)) });
    expect(again.moved).toBe(0);
    expect(departs(first)).toMatchObject(departs(again));
  });

  it.each([
    ["Late", aPolicy({ spacing: { mode: "Late", minMs: hours(2) } })],
    ["Even", even],
  ])("stays the same in mode %s while its first departure is due", (_, policy) => {
    // Two have to leave within 50 minutes, so no plan has them further apart.
    const nodes = [leftMinutes("n1", 5), leftMinutes("n2", 50), leftMinutes("n3", 1260)];
    const whole = plan({ nodes, policy });
    expect(whole.spacing.bestMs).toBe(minutes(50));
    for (const passed of [0, 30, 90].map(seconds)) {
      const again = plan({ nodes, policy, departures: kept(whole), atInstant: plus(now, passed) });
      expect(departs(again)).toEqual(departs(whole));
      expect(again.spacing).toEqual(whole.spacing);
    }
  });

  it("keeps the reason of a due departure", () => {
    // The window never opens; one node is past its deadline, and one reaches it now.
    const policy = aPolicy({
      windows: [daily("00:00-00:01"), daily("00:00-00:01", { type: "Deny" })],
    });
    const nodes = [leftMinutes("n1", -60), leftMinutes("n2", 0), leftMinutes("n3", 300)];
    const first = plan({ nodes, policy });
    const open = plan({ nodes: nodes.slice(0, 1) });
    const reasons = (made: ReturnType<typeof plan>) =>
      made.departures.map(({ node, reason }) => `${node.name} ${reason}`).sort();
    expect(reasons(first)).toEqual([
      "n1 Overdue",
      "n2 DeadlineBeatsWindow",
      "n3 DeadlineBeatsWindow",
    ]);
    for (const passed of [0, 30].map(seconds)) {
      const atInstant = plus(now, passed);
      const again = plan({ nodes, policy, departures: kept(first), atInstant });
      expect(reasons(again)).toEqual(reasons(first));
      expect(again.forecast.late.toSorted()).toEqual(["n1", "n2", "n3"]);
      const overdue = plan({ nodes: nodes.slice(0, 1), departures: kept(open), atInstant });
      expect([overdue.departures[0]?.departAt, overdue.forecast]).toEqual([now, open.forecast]);
    }
  });

  it("accepts a new node without moving the others if there is room", () => {
    const nodes = randomNodes(30).filter((node) => (node.createdAt ?? 0) < now - hours(1));
    const first = plan({ nodes });
    const born = aNode("new", { createdAt: plus(now, minutes(1)) });
    const again = plan({ nodes: [...nodes, born], departures: kept(first) });
    expect(again.moved).toBe(0);
    expect(departs(again)).toMatchObject(departs(first));
    expect(again.departures.at(-1)?.node.name).toBe("new");
  });

  it("moves only neighbors of a new node that needs room among them", () => {
    // Twenty with one launch time fill 18:45 to 23:30, 15 minutes apart; the hold ends at 23:20.
    const nodes = Array.from({ length: 20 }, (_, i) => aNode(`n${i}`));
    const first = plan({ nodes });
    const held = aNode("held", { annotations: { "lastcall.dev/hold": "2026-11-20T23:20:00Z" } });
    const again = plan({ nodes: [...nodes, held], departures: kept(first) });
    expect(again.spacing.reachedMs).toBe(minutes(15));
    expect(again.moved).toBeGreaterThan(0);
    // The node with the last place gives it up and leaves before all others: one move is enough.
    expect(again.moved).toBe(1);
  });

  it("gives the room of a removed node to its neighbors if they were too close", () => {
    // Five share the last 40 minutes: 10 apart. With four nodes 13:20 is possible.
    const nodes = Array.from({ length: 5 }, (_, i) =>
      aNode(`n${i}`, { createdAt: instant(now - hours(23.5) + minutes(40)) }),
    );
    const first = plan({ nodes });
    expect(first.spacing.reachedMs).toBe(minutes(10));
    const rest = nodes.filter((node) => node.name !== "n2");
    const again = plan({ nodes: rest, departures: kept(first) });
    expect(again.spacing.reachedMs).toBe(minutes(40) / 3);
  });

  it("never moves a departure into the past", () => {
    const nodes = randomNodes(50);
    const first = plan({ nodes });
    const later = plus(now, hours(6));
    const left = nodes.filter((node) => (node.createdAt ?? 0) > now - hours(16));
    const again = plan({ nodes: left, departures: kept(first), atInstant: later });
    for (const one of again.departures) {
      if (one.movedFrom !== undefined) expect(one.departAt).toBeGreaterThanOrEqual(later);
    }
  });

  it("does not let all departures start at once that a gate has held back", () => {
    const nodes = Array.from({ length: 6 }, (_, i) =>
      aNode(`n${i}`, { createdAt: instant(now - hours(10)) }),
    );
    const departures = nodes.map((node, i) =>
      aDeparture(node, { departAt: instant(now - minutes(60 - i)) }),
    );
    const again = plan({ nodes, departures });
    expect(again.departures.filter((one) => one.departAt <= now)).toHaveLength(1);
    expect(again.spacing.reachedMs).toBeGreaterThanOrEqual(minutes(15));
  });

  it("keeps the instants of held departures until the first of them has left", () => {
    const nodes = Array.from({ length: 4 }, (_, i) =>
      aNode(`n${i}`, { createdAt: instant(now - hours(10)) }),
    );
    const [n0, ...others] = nodes as [NodeFacts, ...NodeFacts[]];
    const ago = (node: NodeFacts) => minutes(80 - 20 * nodes.indexOf(node));
    const held = (node: NodeFacts) =>
      aDeparture(node, { departAt: instant(now - ago(node)), status: { phase: "Held" } });
    for (const policy of [late, even]) {
      expect(plan({ nodes, policy, departures: nodes.map(held) }).moved).toBe(0);
      // The gate has opened for n0; n1, n2 and n3 do not follow immediately.
      const status = { phase: "Draining", startedAt: instant(now - 1000) } as const;
      const left = aDeparture(n0, { departAt: instant(now - ago(n0)), status });
      const again = plan({ nodes, policy, departures: [left, ...others.map(held)] });
      expect(again.departures.filter((one) => one.departAt <= now)).toEqual([]);
      expect(again.spacing.reachedMs).toBeGreaterThanOrEqual(minutes(15));
    }
  });

  it("reports the departures that had another instant before", () => {
    // The first is past its deadline of 23:30 and has to move; the other keeps its instant.
    const nodes = [aNode("n1"), aNode("n2")];
    const [n1, n2] = nodes as [NodeFacts, NodeFacts];
    const departures = [
      aDeparture(n1, { departAt: plus(now, hours(23.75)) }),
      aDeparture(n2, { departAt: plus(now, hours(20)) }),
    ];
    const policies = [aPolicy()];
    const all = { policies, badPolicies: [], nodes, departures, at: now };
    const [report] = planReport(planFleet(all)).policies;
    expect(report?.moved).toBe(1);
    expect(report?.departures.map((one) => one.explain.includes("moved from"))).toEqual([
      false,
      true,
    ]);
  });

  it("postpones a due departure when one that was held starts just before it", () => {
    const [n0, n1] = [aNode("n0"), aNode("n1")];
    const policy = aPolicy({ lifetime: { ...late.lifetime, maxMs: hours(10) } });
    const startedAt = instant(now - 1000);
    const status = { phase: "Draining", startedAt } as const;
    const due = aDeparture(n1, { departAt: startedAt });
    const held = aDeparture(n0, { departAt: instant(now - minutes(10)), status });
    const onTime = aDeparture(n0, { departAt: startedAt, status });
    const n1Departs = (first: Departure) =>
      plan({ nodes: [n0, n1], policy, departures: [first, due] }).departures[0]?.departAt;
    expect(n1Departs(held)).toBeGreaterThanOrEqual(plus(startedAt, minutes(15)));
    // One that started on time is as near as planned, so nothing is postponed.
    expect(n1Departs(onTime)).toBe(startedAt);
  });

  it.each([
    ["waits for the gap if its deadline allows, since a move may not have been recorded", 24, 15],
    ["stays if its deadline allows no wider gap", 10, 1],
  ])("a departure that is due a minute after a start on time %s", (_, maxHours, gapMinutes) => {
    const createdAt = instant(now - hours(10) + minutes(30));
    const [n0, n1] = [aNode("n0", { createdAt }), aNode("n1", { createdAt })];
    const policy = aPolicy({ lifetime: { ...late.lifetime, maxMs: hours(maxHours) } });
    const startedAt = instant(now - minutes(1));
    const status = { phase: "Draining", startedAt } as const;
    const departures = [
      aDeparture(n0, { departAt: startedAt, status }),
      aDeparture(n1, { departAt: now }),
    ];
    const [next] = plan({ nodes: [n0, n1], policy, departures }).departures;
    const wanted = plus(startedAt, minutes(gapMinutes));
    if (maxHours === 24) expect(next?.departAt).toBeGreaterThanOrEqual(wanted);
    else expect(next?.departAt).toBe(wanted);
  });

  it("postpones one into its reserve, once, if a crowd leaves no room after a late start", () => {
    const startedAt = instant(now - 1000);
    const late = aDeparture(aNode("n0"), {
      departAt: instant(now - minutes(10)),
      status: { phase: "Draining", startedAt },
    });
    // Three share the four minutes until their deadline, two minutes apart.
    const nodes = [1, 2, 3].map((number) =>
      aNode(`n${number}`, { createdAt: instant(now - minutes(23 * 60 + 26)) }),
    );
    const departures = nodes.map((node, at) =>
      aDeparture(node, { departAt: plus(now, minutes(2 * at)) }),
    );
    const first = plan({ nodes, departures: [late, ...departures] });
    // The first of them is due a second after the late start. It leaves a whole gap after the last.
    expect(first.departures.map(({ departAt }) => between(now, departAt))).toEqual(
      [2, 4, 19].map(minutes),
    );
    const moved = first.departures.map(({ node, departAt }) => aDeparture(node, { departAt }));
    expect(plan({ nodes, departures: [late, ...moved] }).moved).toBe(0);
  });

  it("plans a recreated machine under an old Node object again", () => {
    const node = aNode("n1", { bootID: "new", instanceBornAt: now });
    const old = aDeparture(node, { departAt: plus(now, minutes(5)) });
    const departures = [{ ...old, node: { ...old.node, bootID: "old" } }];
    const [only] = plan({ nodes: [node], departures }).departures;
    expect(formatInstant(only?.departAt ?? now)).toBe("2026-11-20T23:30:00.000Z");
    expect(only?.bornFrom).toBe("Instance");
  });

  it("excludes nodes under notice, nodes on their way out and requested departures", () => {
    const nodes = [aNode("n1"), aNode("n2"), aNode("n3"), aNode("n4")];
    const [n1, n2, n3] = nodes as [NodeFacts, NodeFacts, NodeFacts];
    const departures = [
      aDeparture(n1, { cause: "SpotInterruption" }),
      aDeparture(n2, { status: { phase: "Draining", startedAt: instant(now - 1000) } }),
      aDeparture(n3, { cause: "Manual", departAt: plus(now, hours(1)) }),
    ];
    const input = { policies: [aPolicy()], badPolicies: [], nodes, departures, at: now };
    const made = planFleet(input);
    expect(made.notPlanned.map((one) => `${one.node.name} ${one.reason}`)).toEqual([
      "n1 Noticed",
      "n2 Started",
      "n3 Requested",
    ]);
    expect(made.policies[0]?.departures.map((one) => one.node.name)).toEqual(["n4"]);
  });

  it("keeps the gap from a node that has just left", () => {
    const node = aNode("n2", { createdAt: instant(now - hours(10)) });
    const gone = aDeparture(aNode("n1"), {
      status: { phase: "Ended", startedAt: instant(now - minutes(5)) },
    });
    const other = aNode("n3", { createdAt: instant(now - hours(10)) });
    // 13:30 h are left, and one node left 5 minutes ago: 13:35 h for two gaps.
    const made = plan({ nodes: [node, other], policy: even, departures: [gone] });
    expect(made.departures.map((one) => formatInstant(one.departAt))).toEqual([
      "2026-11-20T06:42:30.000Z",
      "2026-11-20T13:30:00.000Z",
    ]);
  });
});

describe("a node whose departure was rolled back", () => {
  const status = {
    phase: "Ended",
    outcome: "RolledBack",
    startedAt: instant(now - minutes(20)),
    endedAt: instant(now - minutes(3)),
  } as const;

  it.each([
    // Four share 40 minutes, 13:20 apart. The oldest would be first, but it rests until 00:07.
    ["rests for ten minutes, and another leaves instead", [38, 40, 40, 40], "00:13:20"],
    ["rests for as long as its deadline allows", [4, 40, 40, 40], "00:04:00"],
    ["rests past its deadline too", [-1], "00:07:00"],
  ])("%s", (_, left, expected) => {
    const nodes = left.map((count, at) => leftMinutes(`n${at}`, count));
    const former = aDeparture(nodes[0] as NodeFacts, { status });
    const policy = aPolicy({ spacing: { mode: "Late", minMs: minutes(20) } });
    const first = plan({ nodes, policy, departures: [former] });
    expect(departs(first).n0).toBe(`2026-11-20T${expected}.000Z`);
    const departures = [former, ...kept(first)];
    const again = plan({ nodes, policy, departures, atInstant: plus(now, minutes(1)) });
    expect(departs(again).n0).toBe(`2026-11-20T${expected}.000Z`);
  });
});

describe("a fleet over two days", () => {
  it.each([
    ["Late", late],
    ["Even", even],
  ])("has few departures moved as nodes leave and are replaced in mode %s", (_, policy) => {
    let nodes = [...randomNodes(24)];
    let made = plan({ nodes, policy });
    let clock = now;
    let moves = 0;
    let left = 0;
    const past: Departure[] = [];
    // The next to leave leaves, and its replacement is created three minutes later.
    while (clock < plus(now, hours(48))) {
      const next = made.departures[0];
      if (next === undefined) break;
      clock = instant(Math.max(clock, next.departAt));
      expect(next.departAt).toBeLessThanOrEqual(next.deadlineAt);
      past.push(aDeparture(next.node, { status: { phase: "Ended", startedAt: clock } }));
      left += 1;
      const born = aNode(`r${left}`, { createdAt: plus(clock, minutes(3)) });
      nodes = [...nodes.filter((node) => node.uid !== next.node.uid), born];
      clock = plus(clock, minutes(3));
      made = plan({ nodes, policy, departures: [...kept(made), ...past], atInstant: clock });
      moves += made.moved;
    }
    expect(left).toBeGreaterThanOrEqual(48);
    expect(moves / left).toBeLessThan(policy === late ? 1 : 24);
  });
});
