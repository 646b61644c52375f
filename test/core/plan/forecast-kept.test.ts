import { expect, it } from "vitest";
import { type Rng, seededRng } from "../../../src/core/chance/chance.ts";
import type { PlannedDeparture } from "../../../src/core/plan/fleet-plan.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import type { Budget, Policy } from "../../../src/core/policy/policy.ts";
import {
  formatInstant,
  hours,
  type Instant,
  millis,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { DecideRun } from "../decide-run.ts";
import { aPolicy, at, daily, inZone } from "../fleet-builder.ts";

/**
 * What a forecast says of budgets is what the passes then do, if its assumptions hold: each drain
 * takes the whole timeout, each node that has left is replaced, nothing else holds a start, and no
 * later plan is better. The checker knows the forecast and the starts, and neither how a forecast
 * is made nor how a pass decides.
 */
const now = at("2026-11-20T00:00:00Z");
/** When forecasts are made, in minutes. */
const looks = [0, 45, 90, 135, 180, 225, 270, 300];
/** A start at the end of a window is made a little earlier. */
const edgeMs = seconds(5);

function pick<T>(rng: Rng, from: readonly T[]): T {
  return from[Math.floor(rng() * from.length)] as T;
}

function randomBudget(rng: Rng): Budget {
  if (rng() < 0.4) return { kind: "PerHour", perHour: 1 + Math.floor(rng() * 4) };
  const scope = pick(rng, ["Policy", "Zone", "Cluster"] as const);
  return { kind: "Nodes", scope, nodes: { count: 1 + Math.floor(rng() * 3) } };
}

function randomPolicy(rng: Rng, lastMs: number): Policy {
  const reserveMs = minutes(pick(rng, [30, 120]));
  return aPolicy({
    lifetime: { minMs: minutes(0), maxMs: millis(lastMs + reserveMs), reserveMs },
    spacing: { mode: pick(rng, ["Late", "Even"]), minMs: minutes(pick(rng, [1, 5, 15])) },
    windows: pick(rng, [[], [], [daily("01:00-03:00"), daily("04:00-05:00")]]),
    budgets: Array.from({ length: 1 + Math.floor(rng() * 2) }, () => randomBudget(rng)),
    drain: { ...aPolicy().drain, timeoutMs: minutes(pick(rng, [3, 10, 25])) },
  });
}

interface Told {
  readonly from: Instant;
  readonly isFeasible: boolean;
  readonly late: readonly string[];
  readonly departures: readonly PlannedDeparture[];
}

interface Course {
  readonly told: readonly Told[];
  readonly started: ReadonlyMap<string, Instant>;
  readonly moves: DecideRun["moves"];
}

function randomCourse(seed: number): Course {
  const rng = seededRng(seed);
  const lastMs = hours(22);
  const policy = randomPolicy(rng, lastMs);
  // Deadlines from now on, up to five hours ahead.
  const agesMs = Array.from({ length: 2 + Math.floor(rng() * 9) }, () => {
    return lastMs - minutes(Math.floor(rng() * 300));
  });
  const drainMs = () => policy.drain.timeoutMs;
  const run = new DecideRun({ ...{ policy, startAt: now, agesMs, drainMs }, replaces: true });
  run.nodes = run.nodes.map((node, place) => ({ ...node, ...inZone(`zone-${place % 2}`) }));
  const first = new Set(run.nodes.map(({ name }) => name));
  const told = looks.map((minute): Told => {
    run.until(plus(now, minutes(minute)));
    const { nodes, departures, now: from } = run;
    const input = { policies: [policy], badPolicies: [], nodes, departures, at: from };
    const [made] = planFleet(input).policies;
    const ofFirst = (made?.departures ?? []).filter(({ node }) => first.has(node.name));
    const { feasible: isFeasible = true, late = [] } = made?.forecast ?? {};
    return { from, isFeasible, late, departures: ofFirst };
  });
  run.until(plus(now, hours(8)));
  const started = new Map(run.begun.map((one) => [one.departure.node.name, one.at]));
  return { told, started, moves: run.moves.filter(({ node }) => first.has(node)) };
}

/** A later plan moves what this one has placed only to do better. */
function isReplanned({ from, departures }: Told, { started, moves }: Course): boolean {
  const last = Math.max(0, ...departures.map(({ node }) => started.get(node.name) ?? 0));
  return moves.some((move) => move.at >= from && move.at <= last);
}

function differenceOf(one: PlannedDeparture, told: Told, course: Course): string | undefined {
  const saidAt = one.heldBackTo ?? one.departAt;
  const startedAt = course.started.get(one.node.name);
  if (startedAt === undefined) return "never started";
  const isOff = Math.abs(startedAt - saidAt) > edgeMs;
  if (told.isFeasible && isOff) return `${formatInstant(startedAt)}, not ${formatInstant(saidAt)}`;
  const isLate = startedAt > one.deadlineAt + edgeMs;
  return isLate && !told.late.includes(one.node.name) ? "late, and not named" : undefined;
}

it("200 random forecasts: those that are feasible are kept, and no other node is late", () => {
  const found: string[] = [];
  let compared = 0;
  for (let seed = 1; seed <= 200; seed += 1) {
    const course = randomCourse(seed);
    for (const told of course.told.filter((one) => !isReplanned(one, course))) {
      compared += told.departures.length;
      for (const one of told.departures) {
        const what = differenceOf(one, told, course);
        const place = `seed ${seed}, ${formatInstant(told.from)}`;
        if (what !== undefined) found.push(`${place}, ${one.node.name}: ${what}`);
      }
    }
  }
  expect(found).toEqual([]);
  expect(compared).toBeGreaterThan(2000);
});
