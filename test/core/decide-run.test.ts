import { expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import { allowedSpans } from "../../src/core/limits/windows.ts";
import type { Policy, Window } from "../../src/core/policy/policy.ts";
import { hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { DecideRun } from "./decide-run.ts";
import { aPolicy, at, daily } from "./fleet-builder.ts";

function anyRun(seed: number): DecideRun {
  const rng = seededRng(seed);
  const upTo = (most: number): number => Math.floor(rng() * (most + 1));
  const windows: readonly (readonly Window[])[] = [
    [],
    [daily("22:00-06:00")],
    [daily("09:00-12:00", { type: "Deny" })],
  ];
  const budgets: readonly Policy["budgets"][] = [
    [],
    [{ kind: "PerHour", perHour: 3 }],
    [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
  ];
  const policy = aPolicy({
    windows: windows[upTo(2)] ?? [],
    budgets: budgets[upTo(2)] ?? [],
    spacing: { mode: upTo(1) === 0 ? "Late" : "Even", minMs: minutes(5 + upTo(25)) },
  });
  return new DecideRun({
    policy,
    startAt: at("2026-11-20T12:00:00Z"),
    agesMs: Array.from({ length: 4 + upTo(16) }, () => upTo(hours(20))),
    drainMs: () => minutes(2 + upTo(6)),
    replaces: true,
  });
}

it.each(Array.from({ length: 40 }, (_, seed) => [seed]))(
  "a fleet that follows the decisions keeps windows and deadlines and is seldom moved: seed %i",
  (seed) => {
    const run = anyRun(seed);
    run.until(plus(run.now, hours(48)));
    expect(run.begun.length).toBeGreaterThan(4);
    for (const { departure, reason, at: begunAt } of run.begun) {
      const { deadlineAt = begunAt, status } = departure;
      const open = allowedSpans(run.policy.windows, begunAt, plus(begunAt, seconds(1))).length > 0;
      expect(reason === "DeadlineForces" ? begunAt >= deadlineAt : open, departure.name).toBe(true);
      // One that a budget delayed, or that leaves in closed hours a gap after another one, may use
      // the reserve of 30 minutes, and no more.
      const wasHeld = status.timeline.some(({ result }) => result.includes("budget was used up"));
      const usesReserve = wasHeld || reason === "DeadlineForces";
      const endAt = plus(deadlineAt, usesReserve ? minutes(32) : minutes(2));
      expect(begunAt, departure.name).toBeLessThanOrEqual(endAt);
    }
    const starts = run.begun.map((one) => one.at);
    const gaps = starts.slice(1).map((start, place) => start - (starts[place] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(run.policy.spacing.minMs / 15);
    for (const { node, at: movedAt } of run.moves) {
      const since = plus(movedAt, minutes(-1));
      const lately = run.moves.filter((one) => one.node === node && one.at > since);
      expect(lately.filter((one) => one.at <= movedAt).length, node).toBeLessThan(5);
    }
  },
);
