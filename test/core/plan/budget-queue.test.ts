import { describe, expect, it } from "vitest";
import { zoneOf } from "../../../src/core/cluster/node.ts";
import { decide } from "../../../src/core/decide.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { instant, type Millis, millis } from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine, inZone } from "../fleet-builder.ts";

const startAt = at("2026-11-20T12:00:00Z");

interface Fleet {
  readonly lifetime: Policy["lifetime"];
  readonly ageMs: number;
  readonly minMs: number;
  readonly atOnce: number;
  readonly drainMs: () => number;
}

/** Nine nodes with one launch time in three zones. */
function nineNodes({ lifetime, ageMs, minMs, atOnce, drainMs }: Fleet): DecideRun {
  const policy = aPolicy({
    lifetime,
    spacing: { mode: "Late", minMs: millis(minMs) },
    budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: atOnce } }],
  });
  const agesMs = Array.from({ length: 9 }, () => ageMs);
  const run = new DecideRun({ policy, startAt, agesMs, drainMs, replaces: false });
  run.nodes = run.nodes.map((node, place) => ({ ...node, ...inZone(`zone-${place % 3}`) }));
  return run;
}

const gapsOf = (starts: readonly number[]) =>
  starts.slice(1).map((start, place) => start - (starts[place] ?? 0));
const inMs = (ms: number) => instant(startAt + ms);
const lasting = (maxMs: number, reserveMs: number): Policy["lifetime"] => ({
  minMs: 0 as Millis,
  maxMs: millis(maxMs),
  reserveMs: millis(reserveMs),
});

/** All were past their deadline before the policy was created. */
const overdue = { lifetime: lasting(2000, 1000), ageMs: 20_000, minMs: 1000, atOnce: 1 };
/** Planned for 12, 13, … 20 seconds from now. */
const inTime = { lifetime: lasting(300_000, 200_000), ageMs: 80_000, minMs: 1000, atOnce: 1 };

describe("nodes whose drains take longer than the gap between their planned instants", () => {
  const drains = [3000, 5500, 6000, 7000];

  describe.each(drains)("with drains of %d ms", (drainMs) => {
    it("leave in the order of the plan, which does not change", () => {
      const run = nineNodes({ ...inTime, drainMs: () => drainMs });
      run.until(inMs(5000));
      const planned = run.departures.toSorted((a, b) => (a.departAt ?? 0) - (b.departAt ?? 0));
      run.until(inMs(200_000));
      expect(run.begun.map(({ departure }) => departure.uid)).toEqual(
        planned.map(({ uid }) => uid),
      );
      expect(run.moves).toEqual([]);
    });

    const outages = [0, 7000, 15_000, 21_500, 33_000].flatMap((fromMs) =>
      [0, 2000, 15_000, 40_000].map((forMs) => ({ fromMs, forMs })),
    );

    it.each(outages)(
      "alternate zones if all are overdue and no replica leads from $fromMs ms for $forMs",
      ({ fromMs, forMs }) => {
        const run = nineNodes({ ...overdue, drainMs: () => drainMs });
        const zones = new Map(run.nodes.map((node) => [node.uid, zoneOf(node)]));
        run.until(inMs(fromMs));
        run.nobodyLeads(forMs);
        run.until(inMs(200_000));
        const left = run.begun.map(({ departure }) => zones.get(departure.node.uid));
        expect(left).toHaveLength(9);
        expect(left.filter((zone, place) => zone === left[place - 1])).toEqual([]);
      },
    );
  });
});

describe("a departure that a slow one has delayed past the end of its lifetime", () => {
  it.each([0, 1, 5000])("starts %d ms after the end of its lifetime, once", (lateMs) => {
    const minute = 60_000;
    const [slow, held, young] = ["slow", "held", "young"].map((name) => aNode(name));
    if (slow === undefined || held === undefined || young === undefined) throw new Error("three");
    const ages = new Map([
      [slow, 20 * 60 * minute],
      [held, 24 * 60 * minute + lateMs],
      [young, 5 * 60 * minute],
    ]);
    const nodes = [...ages].map(([node, ageMs]) => ({ ...node, createdAt: inMs(-ageMs) }));
    const budgets = [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }] as const;
    // The slow one started ten minutes late, two before the other was planned.
    const begun = { phase: "Draining", startedAt: inMs(-35 * minute) } as const;
    const waits = { phase: "Held", reason: "BudgetSpent" } as const;
    const departures = [
      aDeparture(slow, { departAt: inMs(-45 * minute), status: begun }),
      aDeparture(held, {
        ...{ createdAt: inMs(-600 * minute), departAt: inMs(-33 * minute), status: waits },
        deadlineAt: inMs(-30 * minute - lateMs),
      }),
      aDeparture(young, { departAt: inMs(1080 * minute), deadlineAt: inMs(1110 * minute) }),
    ];
    const { decisions } = decide(
      {
        ...{ nodes, departures, policies: [aPolicy({ budgets })], badPolicies: [] },
        ...{ gateAnswers: {}, releaseAnswers: everyMachine },
      },
      startAt,
    );
    const about = decisions.flatMap((one) =>
      "departure" in one && (one.departure as Departure).node.name === "held"
        ? `${one.kind} ${one.reason}`
        : [],
    );
    expect(about).toContain("Begin DeadlineForces");
    expect(about).not.toContain("Note PlanChanged");
  });
});

describe("a departure at the end of its lifetime", () => {
  const minute = 60_000;
  const over = { phase: "Ended", outcome: "Planned", endedAt: startAt } as const;

  interface Other {
    readonly plannedMs: number;
    readonly ageMs: number;
    readonly status: Departure["status"];
  }

  /** The decisions about `due`, whose planned instant, the end of its lifetime, is `lateMs` ago. */
  function decidedOf(lateMs: number, budgets: Policy["budgets"], others: readonly Other[]) {
    const made = { createdAt: inMs(-600 * minute), deadlineAt: inMs(30 * minute) };
    const rest = others.map(({ plannedMs, ageMs, status }, place) => {
      const node = aNode(`other-${place}`, { createdAt: inMs(-ageMs) });
      return { node, departure: aDeparture(node, { ...made, departAt: inMs(plannedMs), status }) };
    });
    const due = aNode("due", { createdAt: inMs(-24 * 60 * minute - lateMs) });
    const named = { departAt: inMs(-lateMs), deadlineAt: inMs(-30 * minute - lateMs) };
    const departures = [
      aDeparture(due, { ...made, ...named }),
      ...rest.map((one) => one.departure),
    ];
    const { decisions } = decide(
      {
        ...{ nodes: [due, ...rest.map(({ node }) => node)], departures, badPolicies: [] },
        ...{ policies: [aPolicy({ budgets })], gateAnswers: {}, releaseAnswers: everyMachine },
      },
      startAt,
    );
    return decisions.flatMap((one) =>
      "departure" in one && (one.departure as Departure).node.name === "due"
        ? `${one.kind} ${one.reason}`
        : [],
    );
  }

  it.each([0, 500])("is forced past the budget that others wait for, %d ms later", (lateMs) => {
    const hour = 60 * minute;
    const held = { phase: "Held", reason: "BudgetSpent", timeline: [] } as const;
    const left = { ...over, startedAt: inMs(-5 * minute), timeline: [] };
    const decided = decidedOf(
      lateMs,
      [{ kind: "PerHour", perHour: 1 }],
      [
        { plannedMs: -8 * minute, ageMs: 23 * hour, status: held },
        { plannedMs: -5 * minute, ageMs: hour, status: left },
      ],
    );
    expect(decided).toContain("Begin DeadlineForces");
  });

  it.each([1, 500])("is late rather than start with another one, %d ms later", (lateMs) => {
    const begun = { phase: "Draining", timeline: [] } as const;
    const late = (agoMs: number) => ({
      plannedMs: -17 * minute,
      ageMs: 1435 * minute,
      status: { ...begun, startedAt: inMs(-agoMs) },
    });
    expect(decidedOf(lateMs, [], [late(0)])).toEqual([]);
    expect(decidedOf(lateMs, [], [late(15 * minute)])).toEqual(["Begin Spaced"]);
  });
});

describe("departures that wait for a budget", () => {
  /** The first three drains end together, at `endMs`. */
  const drainsUntil = (endMs: number) => {
    let count = 0;
    const starts = [12_000, 18_000, 24_000];
    return () => {
      count += 1;
      return count <= 3 ? endMs - (starts[count - 1] ?? 0) : 1000;
    };
  };
  const spaced = { lifetime: lasting(300_000, 200_000), minMs: 6000, atOnce: 3 };

  it("start spacing.min apart when several places become free at once", () => {
    // The last of nine, six seconds apart, leaves at its deadline: 60 seconds from now.
    const run = nineNodes({ ...spaced, ageMs: 40_000, drainMs: drainsUntil(90_000) });
    run.until(inMs(200_000));
    const starts = run.begun.map((one) => (one.at - startAt) / 1000);
    expect(starts.slice(0, 3)).toEqual([12, 18, 24]);
    const gaps = gapsOf(starts.slice(3));
    expect(starts[3]).toBeGreaterThanOrEqual(90);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(6);
    expect(run.mostOut).toBe(3);
  });

  it("override the budget early enough to start spacing.min apart before their lifetimes end", () => {
    // Alive until 260 s from now; the three slow ones are out until 245 s.
    const run = nineNodes({ ...spaced, ageMs: 40_000, drainMs: drainsUntil(245_000) });
    run.until(inMs(400_000));
    const starts = run.begun.map((one) => (one.at - startAt) / 1000);
    const last = starts.slice(3);
    expect(last).toHaveLength(6);
    // Six seconds apart, the last four tenths before its lifetime ends.
    expect(last[0]).toBe(229.6);
    expect(Math.max(...last)).toBeLessThanOrEqual(260);
    expect(Math.min(...gapsOf(last))).toBeGreaterThanOrEqual(6);
    expect(run.begun.map(({ reason }) => reason)).not.toContain("Overdue");
    // Each of the six is gone a second after it started.
    expect(run.mostOut).toBe(4);
  });
});

describe("a budget that one node uses up for good", () => {
  const minute = 60_000;

  /** Nine nodes, whose lifetime ends five hours from now; the first to leave never does. */
  function stuck(reserveMinutes: number): DecideRun {
    let count = 0;
    const drainMs = () => {
      count += 1;
      return count === 1 ? 10_000 * minute : minute;
    };
    const lifetime = lasting(400 * minute, reserveMinutes * minute);
    return nineNodes({ lifetime, ageMs: 100 * minute, minMs: 15 * minute, atOnce: 1, drainMs });
  }

  const minutesOf = (run: DecideRun) => run.begun.map((one) => (one.at - startAt) / minute);

  it.each([
    ["long enough for eight gaps of spacing.min", 150, 15],
    ["in which they leave 4 minutes apart, a minute early", 33, 4],
    ["too short for eight gaps of a fifteenth of spacing.min", 4, 1],
    ["of nothing", 0, 1],
  ])("is overridden one gap at a time, with a reserve %s", (_, reserveMinutes, gap) => {
    const run = stuck(reserveMinutes);
    run.until(inMs(2000 * minute));
    const starts = minutesOf(run);
    expect(starts).toHaveLength(9);
    expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(gap - 0.01);
    expect(Math.max(...starts)).toBeLessThanOrEqual(300);
  });

  it.each([250, 280, 299.99, 300.01, 400])(
    "is not overridden for all at once if nobody led until minute %d",
    (untilMinute) => {
      const run = stuck(24);
      // The first has left, and the others wait for the budget.
      run.until(inMs(230 * minute));
      run.nobodyLeads((untilMinute - 230) * minute);
      run.until(inMs(2000 * minute));
      const starts = minutesOf(run);
      expect(starts.length).toBeGreaterThan(1);
      expect(Math.min(...gapsOf(starts))).toBeGreaterThanOrEqual(1);
      expect(Math.max(...run.begun.map(({ at }) => at))).toBeGreaterThan(
        inMs(untilMinute * minute),
      );
    },
  );
});
