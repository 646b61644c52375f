import { describe, expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PlanInput, PolicyPlan } from "../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../src/core/plan/plan.ts";
import type { Budget, Policy } from "../../src/core/policy/policy.ts";
import { hours, type Instant, instant, millis, minutes } from "../../src/core/time/time.ts";
import { type Begun, DecideRun } from "./decide-run.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "./fleet-builder.ts";

const startAt = at("2026-11-20T12:00:00Z");
/** From a decision to the next pass, which sees its changes, in these runs. */
const lookMs = 1000;

interface Fleet {
  readonly count: number;
  /** From now to the deadline that all of them share. */
  readonly deadlineMs: number;
  readonly reserveMs: number;
  readonly minMs: number;
  readonly drainMs?: number;
  readonly budgets?: readonly Budget[];
  readonly mode?: "Late" | "Even";
}

function fleetRun(fleet: Fleet): DecideRun {
  const {
    count,
    deadlineMs,
    reserveMs,
    minMs,
    drainMs = 2000,
    budgets = [],
    mode = "Late",
  } = fleet;
  const policy = aPolicy({
    lifetime: { minMs: millis(0), maxMs: hours(24), reserveMs: millis(reserveMs) },
    spacing: { mode, minMs: millis(minMs) },
    budgets,
  });
  const ageMs = hours(24) - reserveMs - deadlineMs;
  return new DecideRun({
    ...{ policy, startAt, agesMs: Array.from({ length: count }, () => ageMs) },
    ...{ drainMs: () => drainMs, replaces: false },
  });
}

function gapsOf(begun: readonly Begun[]): readonly number[] {
  return begun.slice(1).map((one, place) => one.at - (begun[place]?.at ?? 0));
}

const inMs = (ms: number): Instant => instant(startAt + ms);
const oneAtOnce: readonly Budget[] = [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }];

describe("after an outage", () => {
  // Six with one launch time, six seconds apart: planned for 30, 36, 42, 48, 54 and 60 seconds from
  // now.
  const six = { count: 6, deadlineMs: 60_000, reserveMs: 60_000, minMs: 6000 };

  it.each([40, 43.5, 45, 47, 50, 53.9, 57, 59, 61, 75])(
    "from second 20 to second %d of the plan all leave spacing.min apart, within their lifetime",
    (backAtSeconds) => {
      const run = fleetRun(six);
      run.until(inMs(20_000));
      run.nobodyLeads(backAtSeconds * 1000 - 20_000);
      run.until(inMs(200_000));
      expect(run.begun).toHaveLength(6);
      expect(run.begun[0]?.at).toBe(inMs(backAtSeconds * 1000));
      expect(Math.min(...gapsOf(run.begun))).toBeGreaterThanOrEqual(6000 - lookMs);
      expect(run.begun.at(-1)?.at).toBeLessThanOrEqual(inMs(120_000));
    },
  );

  it("departures that were not missed keep their instants if those are far enough away", () => {
    const run = fleetRun(six);
    run.until(inMs(20_000));
    // Back at 48 s: three were missed by then; 54 s and 60 s are six and twelve seconds away.
    run.nobodyLeads(28_000);
    run.until(inMs(200_000));
    const seconds = run.begun.map((one) => (one.at - startAt) / 1000);
    expect(seconds).toEqual([48, 54, 60, 66, 72, 78]);
  });

  it("the gap is as wide as the lifetime allows", () => {
    const run = fleetRun({ ...six, reserveMs: 0 });
    run.until(inMs(20_000));
    run.nobodyLeads(25_000);
    run.until(inMs(200_000));
    // Back at 45 s, six have 15 s until the end of their lifetime: 3 s for each, less 1 %.
    expect(run.begun).toHaveLength(6);
    expect(Math.min(...gapsOf(run.begun))).toBeGreaterThanOrEqual(2970);
    expect(run.begun.at(-1)?.at).toBeLessThanOrEqual(inMs(60_000 + lookMs));
  });

  it("nodes past their lifetime leave one by one as well", () => {
    const run = fleetRun({ ...six, reserveMs: 10_000 });
    run.until(inMs(20_000));
    run.nobodyLeads(100_000);
    run.until(inMs(400_000));
    expect(run.begun).toHaveLength(6);
    expect(Math.min(...gapsOf(run.begun))).toBeGreaterThanOrEqual(6000 - lookMs);
  });

  it.each([4000, 10_000])(
    "budgets apply even past the deadline: one at once, drains of %i ms",
    (drainMs) => {
      const run = fleetRun({ ...six, reserveMs: 300_000, drainMs, budgets: oneAtOnce });
      // One is being drained when the leader stops, and that takes as much longer.
      run.until(inMs(31_000));
      run.nobodyLeads(60_000);
      run.until(inMs(400_000));
      expect(run.begun).toHaveLength(6);
      expect(run.mostOut).toBe(1);
      const gaps = gapsOf(run.begun.slice(1));
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(Math.max(6000, drainMs) - lookMs);
    },
  );
});

describe("after a long hold", () => {
  const four = { count: 4, deadlineMs: 3_600_000, reserveMs: 3_600_000, minMs: 600_000 };
  const frozen = (policy: Policy, until: Instant): Policy => ({
    ...policy,
    gates: { ...policy.gates, freezeUntil: until },
  });
  const none = new Map<string, string>();
  const quiet = { alerts: [], blockingPods: none, gangs: none };

  it.each<[string, (run: DecideRun) => void, (run: DecideRun) => void]>([
    [
      "a freeze that has ended",
      (run) => {
        run.policy = frozen(run.policy, inMs(3_000_000));
      },
      () => {},
    ],
    [
      "alerts that have cleared",
      (run) => {
        const alerts = { url: "http://alerts", matchers: [] };
        run.policy = { ...run.policy, gates: { alerts, blockingPods: [] } };
        run.gateAnswers = { spot: { ...quiet, alerts: ["Down"] } };
      },
      (run) => {
        run.gateAnswers = { spot: quiet };
      },
    ],
    [
      "a pause that is over",
      (run) => {
        run.policy = { ...run.policy, paused: true };
      },
      (run) => {
        run.policy = { ...run.policy, paused: false };
      },
    ],
  ])("the departures that %s held leave spacing.min apart", (_, shut, open) => {
    // Planned for minutes 30, 40, 50 and 60; held until minute 50.
    const run = fleetRun(four);
    run.until(inMs(600_000));
    shut(run);
    run.until(inMs(3_000_000));
    expect(run.begun).toEqual([]);
    open(run);
    run.until(inMs(9_000_000));
    expect(run.begun).toHaveLength(4);
    expect(run.begun[0]?.at).toBeLessThanOrEqual(inMs(3_060_000));
    expect(Math.min(...gapsOf(run.begun))).toBeGreaterThanOrEqual(600_000 - 60_000);
  });

  it("nodes whose deadline passes during a freeze are forced to leave one by one", () => {
    const run = fleetRun(four);
    run.until(inMs(600_000));
    run.policy = frozen(run.policy, inMs(36_000_000));
    run.until(inMs(9_000_000));
    expect(run.begun.map(({ reason }) => reason)).toEqual(Array(4).fill("DeadlineForces"));
    expect(run.begun[0]?.at).toBe(inMs(3_600_000));
    expect(gapsOf(run.begun)).toEqual([600_000, 600_000, 600_000]);
  });
});

describe("the best gap in the plan after a long hold", () => {
  const night = at("2026-11-20T22:00:00Z");
  const windows = [daily("22:00-06:00")];
  const plan = (fleet: Partial<PlanInput>): PolicyPlan => {
    const rest = { policies: [], badPolicies: [], nodes: [], departures: [], at: night };
    const [made] = planFleet({ ...rest, ...fleet }).policies;
    if (made === undefined) throw new Error("the policy has a plan");
    return made;
  };

  interface Hold {
    readonly mode: "Late" | "Even";
    /** The end of the hold: the first node leaves then. */
    readonly until: string;
    readonly count: number;
  }

  /** Nodes with a minute between their deadlines, from 08:00 on. */
  function held({ mode, until, count }: Hold): { initial: PolicyPlan; again: PolicyPlan } {
    const policies = [aPolicy({ spacing: { mode, minMs: minutes(15) }, windows })];
    const nodes = Array.from({ length: count }, (_, i) =>
      aNode(`n${i}`, { createdAt: instant(at("2026-11-20T08:30:00Z") + minutes(i)) }),
    );
    const startedAt = at(`2026-11-21T${until}:00Z`);
    const departures = plan({ policies, nodes }).departures.map((one, place) =>
      aDeparture(one.node, {
        ...{ departAt: one.departAt, deadlineAt: one.deadlineAt, createdAt: night },
        status:
          place === 0 ? { phase: "Draining", startedAt } : { phase: "Held", reason: "Frozen" },
      }),
    );
    const input = { policies, nodes, at: instant(startedAt + lookMs) };
    const initial = plan({ ...input, departures: departures.slice(0, 1) });
    return { initial, again: plan({ ...input, departures }) };
  }

  it.each<Hold & { readonly bestMs: number }>([
    // Five and nine have to leave between 05:40 and 06:00, away from the one that left at 05:40.
    { mode: "Late", until: "05:40", count: 6, bestMs: 239_999 },
    { mode: "Even", until: "05:40", count: 6, bestMs: 239_999 },
    { mode: "Late", until: "05:40", count: 10, bestMs: 133_333 },
    { mode: "Even", until: "02:00", count: 6, bestMs: 2_879_999 },
  ])("is that of an initial plan: $mode, $count nodes held until $until", ({ bestMs, ...hold }) => {
    const { initial, again } = held(hold);
    expect([initial.spacing.bestMs, again.spacing.bestMs]).toEqual([bestMs, bestMs]);
    expect(again.spacing.reachedMs).toBeLessThanOrEqual(bestMs);
  });

  it.each([
    ["06:10", minutes(15)],
    // The lifetimes of the two that remain end at 08:31 and 08:32.
    ["08:20", minutes(6)],
  ])("is the gap reached if they have to use the reserve: held until %s", (until, gapMs) => {
    const { again } = held({ mode: "Late", until, count: 3 });
    expect(again.departures.map(({ reason }) => reason)).toEqual(["Missed", "Missed"]);
    expect(again.spacing).toMatchObject({ reachedMs: gapMs, bestMs: gapMs });
  });
});

describe("any outage", () => {
  it.each(Array.from({ length: 12 }, (_, block) => [block]))(
    "leaves as much of spacing.min between departures as the lifetime allows: block %i of 25 seeds",
    (block) => {
      for (let seed = block * 25; seed < block * 25 + 25; seed += 1) {
        const rng = seededRng(seed);
        const upTo = (most: number): number => Math.floor(rng() * (most + 1));
        const count = 2 + upTo(10);
        const minMs = 1000 * (15 + upTo(600));
        const fleet = {
          ...({ count, minMs, mode: upTo(1) === 0 ? "Late" : "Even" } as const),
          deadlineMs: minMs * (count + upTo(5)),
          reserveMs: minMs * (count + 3),
          drainMs: upTo(minMs),
          budgets: upTo(1) === 0 ? [] : oneAtOnce,
        };
        const run = fleetRun(fleet);
        run.until(inMs(upTo(fleet.deadlineMs)));
        run.nobodyLeads(upTo(fleet.deadlineMs));
        const begunBefore = run.begun.length;
        const backAt = run.now;
        run.until(inMs(2 * fleet.deadlineMs + fleet.reserveMs + 60 * fleet.drainMs));
        expect(run.begun, `seed ${seed}`).toHaveLength(count);
        // As wide as fits into the rest of their lifetime; past it there is no bound.
        const left = count - begunBefore;
        const reservationMs = fleet.deadlineMs + fleet.reserveMs - (backAt - startAt);
        const widestMs =
          reservationMs < 0 || left < 2 ? minMs : Math.min(minMs, reservationMs / (left - 1));
        const lagMs = Math.min(60_000, Math.max(lookMs, minMs / 15)) + lookMs;
        const gaps = gapsOf(run.begun.slice(Math.max(0, begunBefore - 1)));
        expect(Math.min(minMs, ...gaps), `seed ${seed}`).toBeGreaterThanOrEqual(
          0.99 * widestMs - lagMs,
        );
        if (fleet.budgets.length > 0) expect(run.mostOut, `seed ${seed}`).toBe(1);
      }
    },
  );
});
