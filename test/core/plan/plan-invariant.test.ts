import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { allowedSpans } from "../../../src/core/limits/windows.ts";
import type { PlanInput, PolicyPlan } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { planReport } from "../../../src/core/plan/plan-report.ts";
import { RankSet } from "../../../src/core/plan/spacing/forbidden-region.ts";
import type { Budget, Policy, Window } from "../../../src/core/policy/policy.ts";
import {
  coversInstant,
  formatInstant,
  hours,
  instant,
  millis,
  minutes,
} from "../../../src/core/time/time.ts";
import { isLongRun } from "../../support/long-run.ts";
import { aDeparture, aNode, aPolicy, at, daily, inZone } from "../fleet-builder.ts";

const now = at("2026-10-24T00:00:00Z");

/** A fleet with everything at once: windows across a clock change, holds, budgets, old plans. */
function anyFleet(seed: number): PlanInput {
  const rng = seededRng(seed);
  const upTo = (most: number): number => Math.floor(rng() * (most + 1));
  const oneOf = <Item>(...items: readonly Item[]): Item => items[upTo(items.length - 1)] as Item;
  const window = (): Window => {
    const startMinute = upTo(1439);
    const endMinute = 1 + ((startMinute + upTo(600)) % 1440);
    const timeZone = oneOf("UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York");
    const shape = daily("00:00-01:00", { type: oneOf("Allow", "Allow", "Deny"), timeZone });
    return {
      ...shape,
      startMinute,
      endMinute: endMinute === startMinute ? endMinute + 1 : endMinute,
    } as Window;
  };
  const policy: Policy = aPolicy({
    lifetime: { minMs: hours(upTo(4)), maxMs: hours(12 + upTo(36)), reserveMs: minutes(upTo(60)) },
    spacing: { mode: oneOf("Late", "Even"), minMs: minutes(upTo(30)) },
    windows: Array.from({ length: upTo(3) }, window),
    budgets: [
      { kind: "PerHour", perHour: 1 + upTo(5) },
      {
        kind: "Nodes",
        scope: oneOf("Policy", "Zone", "Cluster"),
        nodes: { percent: 1 + upTo(30) },
      },
    ].slice(upTo(2)) as readonly Budget[],
  });
  const nodes = Array.from({ length: 1 + upTo(40) }, (_, i): NodeFacts => {
    const born = now - Math.floor(rng() * hours(60));
    const hold = oneOf(
      "",
      "",
      "",
      "6h",
      formatInstant(instant(now + Math.floor(rng() * hours(30)))),
    );
    const annotations = { "lastcall.dev/hold": hold };
    return aNode(`n${i}`, {
      createdAt: instant(born),
      annotations,
      ...inZone(oneOf("a", "b", "c")),
    });
  });
  const departures = nodes.flatMap((node): Departure[] => {
    const departAt = instant(now + Math.floor((rng() - 0.1) * hours(30)));
    const startedAt = instant(now - upTo(7_200_000));
    const plannedAt = instant(startedAt - upTo(1_800_000));
    const lately = instant(now - upTo(7_200_000));
    const waits = { phase: "Held", reason: "BudgetSpent" } as const;
    return oneOf<Departure[]>(
      [],
      [],
      [aDeparture(node, { departAt })],
      [aDeparture(node, { departAt, status: { phase: "Held" } })],
      [aDeparture(node, { status: { phase: "Draining", startedAt } })],
      [aDeparture(node, { departAt: plannedAt, status: { phase: "Draining", startedAt } })],
      [aDeparture(node, { departAt: lately, createdAt: instant(now - hours(90)), status: waits })],
      [aDeparture(node, { status: { phase: "Ended", startedAt } })],
    );
  });
  return {
    policies: [policy],
    badPolicies: [],
    nodes,
    departures: upTo(1) ? departures : [],
    at: now,
  };
}

function check(plan: PolicyPlan, { departures: before }: PlanInput): void {
  const { policy, departures } = plan;
  const spans = allowedSpans(policy.windows, instant(now - hours(48)), instant(now + hours(900)));
  for (const { departAt, earliestAt, deadlineAt, reason, node } of departures) {
    const due = departAt <= now;
    const open = coversInstant(spans, departAt);
    if (reason === "Spaced" && !due) {
      expect(open && earliestAt <= departAt && departAt <= deadlineAt, node.name).toBe(true);
    }
    if (reason === "DeadlineBeatsWindow") expect(departAt).toBe(deadlineAt);
    if (reason === "Overdue") {
      // A due departure that was planned past its deadline keeps its instant; no other instant is
      // in the past.
      const isKept = before.some((one) => one.node.uid === node.uid && one.departAt === departAt);
      expect(deadlineAt < departAt && (!due || departAt === now || isKept), node.name).toBe(true);
    }
    if (reason === "DeadlineBeatsWindow") {
      const from = Math.max(earliestAt, now);
      const missed = spans.some((span) => span.startAt <= deadlineAt && span.endAt > from);
      expect(from <= deadlineAt && missed, node.name).toBe(false);
    }
  }
}

describe("the plan of any fleet", () => {
  it.each(Array.from({ length: isLongRun ? 10 : 4 }, (_, block) => [block]))(
    "keeps its guarantees: block %i of 50 seeds",
    (block) => {
      for (let seed = block * 50; seed < block * 50 + 50; seed += 1) {
        const input = anyFleet(seed);
        const plan = planFleet(input);
        const [policy] = plan.policies;
        if (policy === undefined) throw new Error(`seed ${seed} has a policy`);
        check(policy, input);
        const named = [
          ...policy.departures.map((one) => one.node.name),
          ...plan.notPlanned.map((one) => one.node.name),
        ];
        expect(named.sort(), `seed ${seed}`).toEqual(input.nodes.map((node) => node.name).sort());
        const { reachedMs, bestMs } = policy.spacing;
        if (
          input.departures.length === 0 &&
          !policy.departures.some((one) => one.reason === "Overdue")
        ) {
          const wanted = policy.policy.spacing;
          const goal = wanted.mode === "Late" ? Math.min(wanted.minMs, bestMs ?? 0) : (bestMs ?? 0);
          expect(reachedMs ?? 0, `seed ${seed}`).toBeGreaterThanOrEqual(goal);
        }
        const turned = {
          ...input,
          nodes: [...input.nodes].reverse(),
          departures: [...input.departures].reverse(),
        };
        expect(planReport(planFleet(turned))).toEqual(planReport(plan));
      }
    },
  );
});

describe("overdue nodes", () => {
  it("get the instants that a search millisecond by millisecond finds", () => {
    for (let seed = 0; seed < 300; seed += 1) {
      const rng = seededRng(seed);
      const upTo = (most: number): number => Math.floor(rng() * (most + 1));
      const lifetime = { minMs: millis(0), maxMs: millis(40), reserveMs: millis(0) };
      const nodes = Array.from({ length: 2 + upTo(6) }, (_, i) => {
        const hold = formatInstant(instant(now + upTo(20)));
        const annotations = upTo(3) === 0 ? { "lastcall.dev/hold": hold } : {};
        return aNode(`n${i}`, { createdAt: instant(now - upTo(90)), annotations });
      });
      const policies = [
        aPolicy({ lifetime, spacing: { mode: "Late", minMs: millis(1 + upTo(9)) } }),
      ];
      const [made] = planFleet({
        policies,
        badPolicies: [],
        nodes,
        departures: [],
        at: now,
      }).policies;
      const all = made?.departures ?? [];
      const taken = all
        .filter((one) => one.reason !== "Overdue")
        .map((one) => one.departAt as number);
      const gaps = taken.slice(1).map((departAt, i) => departAt - (taken[i] ?? 0));
      const reached = gaps.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...gaps);
      const minMs = policies[0]?.spacing.minMs ?? 0;
      const gap = reached === 0 ? minMs : Math.min(minMs, reached);
      const overdue = all.filter((one) => one.reason === "Overdue");
      overdue.sort((a, b) => a.bornAt - b.bornAt || (a.node.name < b.node.name ? -1 : 1));
      for (const one of overdue) {
        let expected: number = one.earliestAt;
        while (taken.some((other) => Math.abs(other - expected) < gap)) expected += 1;
        expect(one.departAt, `seed ${seed} ${one.node.name}`).toBe(expected);
        taken.push(expected);
      }
    }
  });
});

describe("a set of ranks", () => {
  it("finds neighbors as a plain sorted list does", () => {
    const rng = seededRng(3);
    const set = new RankSet(3000);
    const list = new Set<number>();
    for (let round = 0; round < 4000; round += 1) {
      const rank = Math.floor(rng() * 3000);
      if (rng() < (round < 2000 ? 0.6 : 0.1)) {
        set.add(rank);
        list.add(rank);
      } else {
        set.delete(rank);
        list.delete(rank);
      }
      const probe = Math.floor(rng() * 3000);
      const above = [...list].filter((one) => one >= probe);
      const below = [...list].filter((one) => one < probe);
      expect(set.atOrAbove(probe)).toBe(above.length === 0 ? -1 : Math.min(...above));
      expect(set.below(probe)).toBe(below.length === 0 ? -1 : Math.max(...below));
    }
  });
});
