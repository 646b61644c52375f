import { describe, expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Budget, Policy } from "../../src/core/policy/policy.ts";
import { hours, type Instant, instant, millis } from "../../src/core/time/time.ts";
import { type Begun, DecideRun } from "./decide-run.ts";
import { aPolicy, at } from "./fleet-builder.ts";

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
  const quiet = { alerts: [], blockingPods: new Map<string, string>() };

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
