import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { hours, type Instant, minus, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const startAt = at("2026-11-20T00:00:00Z");
const inMinutes = (count: number): Instant => plus(startAt, minutes(count));

/** Three nodes with one launch time, which are to leave 60, 75 and 90 minutes after the start. */
function threeNodes(): DecideRun {
  const policy = aPolicy({
    lifetime: { minMs: minutes(0), maxMs: hours(2), reserveMs: minutes(30) },
  });
  const drainMs = () => minutes(2);
  return new DecideRun({ policy, startAt, agesMs: [0, 0, 0], drainMs, replaces: true });
}

describe("a departure that a person holds while nobody leads for a while", () => {
  const away = [0, 6, 12, 18, 24, 30, 33, 36, 39, 42, 45, 48, 60, 90];
  const cases = ["n1", "n2", "n3"].flatMap((held) => away.map((forMinutes) => [held, forMinutes]));

  it.each(cases as [string, number][])("is not moved again and again: %s, %d minutes", (...row) => {
    const [held, forMinutes] = row;
    const run = threeNodes();
    run.until(inMinutes(5));
    run.edit(held, { hold: true });
    run.until(inMinutes(55));
    run.nobodyLeads(minutes(forMinutes));
    const before = run.moves.length;
    run.until(plus(run.now, hours(2)));
    expect(run.moves.length - before).toBeLessThanOrEqual(12);
  });
});

describe("passes at one instant", () => {
  it.each([1, 6, 11, 16])(
    "soon change nothing any more, whatever has happened: seeds from %d",
    (from) => {
      for (let seed = from; seed < from + 5; seed += 1) {
        const rng = seededRng(seed);
        const upTo = (most: number): number => Math.floor(rng() * (most + 1));
        const policy = aPolicy({
          lifetime: { minMs: minutes(0), maxMs: hours(3 + upTo(6)), reserveMs: minutes(upTo(60)) },
          spacing: { mode: upTo(1) === 0 ? "Late" : "Even", minMs: minutes(1 + upTo(30)) },
          budgets: upTo(1) === 0 ? [] : [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
        });
        const agesMs = Array.from({ length: 2 + upTo(8) }, () => minutes(upTo(12 * 60)));
        const drainMs = () => minutes(1 + upTo(40));
        const run = new DecideRun({ policy, startAt, agesMs, drainMs, replaces: true });
        for (let hour = 0; hour < 12; hour += 1) {
          run.until(plus(startAt, hours(hour)));
          if (upTo(2) === 0) run.nobodyLeads(minutes(upTo(120)));
          if (upTo(2) === 0) run.edit(`n${1 + upTo(9)}`, { hold: upTo(1) === 0 });
          const freezeUntil = upTo(2) === 0 ? plus(run.now, minutes(upTo(200))) : undefined;
          run.policy = { ...run.policy, gates: { blockingPods: [], freezeUntil } };
          expect(run.rest(12), `seed ${seed}, hour ${hour}`).toBeLessThan(12);
        }
      }
    },
  );
});

describe("a node whose departure was just rolled back at the end of its window", () => {
  const closesAt = at("2026-11-20T04:00:00Z");
  const node = aNode("n1", { createdAt: at("2026-11-20T01:00:00Z") });
  const policy = aPolicy({
    lifetime: { minMs: minutes(0), maxMs: hours(5), reserveMs: minutes(30) },
    windows: [daily("00:30-04:00")],
  });
  const plannedAt = (endedAt: Instant, now: Instant) => {
    const status = { phase: "Ended", outcome: "RolledBack", endedAt, timeline: [] } as const;
    const former = aDeparture(node, { policy: "spot", status: { ...status, startedAt: endedAt } });
    const plan = planFleet({
      ...{ nodes: [node], policies: [policy], badPolicies: [], departures: [former], at: now },
    });
    return plan.policies[0]?.departures[0];
  };

  it("rests for a minute at least, and leaves at its deadline instead", () => {
    const found = plannedAt(minus(closesAt, seconds(5)), minus(closesAt, seconds(4)));
    expect(found).toMatchObject({ departAt: at("2026-11-20T05:30:00Z") });
  });

  it("rests for less than ten minutes if it can leave in its window then", () => {
    const found = plannedAt(minus(closesAt, minutes(5)), minus(closesAt, minutes(5)));
    expect(found?.departAt).toBeLessThan(closesAt);
    expect(found?.departAt).toBeGreaterThanOrEqual(minus(closesAt, minutes(4)));
  });
});
