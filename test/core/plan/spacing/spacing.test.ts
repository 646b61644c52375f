import { describe, expect, it } from "vitest";
import { seededRng } from "../../../../src/core/chance/chance.ts";
import type { OpenTime } from "../../../../src/core/limits/gate.ts";
import { evenInstants } from "../../../../src/core/plan/planned-departure.ts";
import { assignSlots, type StartRange } from "../../../../src/core/plan/spacing/slot-assignment.ts";
import {
  bestGapMs,
  earlyInstants,
  lateInstants,
  type SpacingProblem,
  smallestGapMs,
  spacingOf,
} from "../../../../src/core/plan/spacing/spacing.ts";
import { type Choices, canKeepGap, largestSum, widestGap } from "./spacing-oracle.ts";

const always: OpenTime = { lows: [-1e9], highs: [1e9] };

function ranges(...pairs: [number, number][]): readonly StartRange[] {
  return pairs.map(([release, deadline]) => ({ release, deadline }));
}

describe("the best gap", () => {
  it.each<[string, SpacingProblem, number | null]>([
    [
      "is null with fewer than two departures",
      { jobs: ranges([0, 9]), open: always, fixed: [] },
      null,
    ],
    [
      "divides a shared range evenly: 100 by 4 gaps",
      { jobs: ranges([0, 100], [0, 100], [0, 100], [0, 100], [0, 100]), open: always, fixed: [] },
      25,
    ],
    [
      "is truncated to whole milliseconds: 100 by 3 gaps",
      { jobs: ranges([0, 100], [0, 100], [0, 100], [0, 100]), open: always, fixed: [] },
      33,
    ],
    [
      "spans closed times: from the end of one window to the start of the next",
      { jobs: ranges([0, 50], [0, 50]), open: { lows: [0, 40], highs: [5, 45] }, fixed: [] },
      45,
    ],
    [
      "counts a fixed departure: a free node can be 60 away from it",
      { jobs: ranges([0, 90]), open: always, fixed: [30] },
      60,
    ],
    [
      "is 0 if two must leave at the same instant",
      { jobs: ranges([0, 90]), open: always, fixed: [30, 30] },
      0,
    ],
    [
      "places an urgent node before a patient one: [0, 100] waits for [10, 12]",
      { jobs: ranges([0, 100], [10, 12]), open: always, fixed: [] },
      90,
    ],
  ])("%s", (_, problem, expected) => {
    expect(bestGapMs(spacingOf(problem))).toBe(expected);
  });
});

describe("late instants", () => {
  it("place every departure as late as possible, a gap apart", () => {
    const jobs = ranges([0, 100], [0, 100], [0, 95], [0, 30]);
    const slots = lateInstants(spacingOf({ jobs, open: always, fixed: [] }), 10);
    expect([...(slots ?? [])]).toEqual([30, 80, 90, 100]);
  });

  it("skip a closed time and keep away from a fixed departure", () => {
    const jobs = ranges([0, 100], [0, 100], [0, 100]);
    const open = { lows: [0, 90], highs: [50, 99] };
    // 99 and 92 are in the second window; 92 is only 6 from the fixed one.
    const slots = lateInstants(spacingOf({ jobs, open, fixed: [86] }), 7);
    expect([...(slots ?? [])]).toEqual([43, 50, 99]);
  });
});

describe("even instants", () => {
  it("spread the rest widely even if one crowded hour keeps the smallest gap small", () => {
    const jobs = ranges([0, 10], [0, 10], [0, 10], [0, 1000], [0, 1000]);
    const slots = evenInstants(spacingOf({ jobs, open: always, fixed: [] }), 0);
    // Three share [0, 10]: 5 apart. The other two can then be 495 apart from 10 to 1000.
    expect([...slots]).toEqual([0, 5, 10, 505, 1000]);
  });
});

interface Case {
  readonly problem: SpacingProblem;
  readonly choices: Choices;
}

/** A fleet on a small grid: common lifetimes, holds that break the order, windows, forced nodes. */
function randomCase(seed: number, limits: { nodes: number; grid: number }): Case {
  const rng = seededRng(seed);
  const upTo = (most: number): number => Math.floor(rng() * (most + 1));
  const closed = Array.from({ length: limits.grid + 1 }, () => false);
  for (let left = upTo(3); left > 0; left -= 1) {
    closed.fill(true, upTo(limits.grid), upTo(limits.grid));
  }
  const life = 1 + upTo(limits.grid);
  const sameLife = rng() < 0.5;
  const jobs: StartRange[] = [];
  const fixed: number[] = [];
  const choices: number[][] = [];
  for (let left = 2 + upTo(limits.nodes - 2); left > 0; left -= 1) {
    const from = upTo(limits.grid - 1);
    const deadline = Math.min(limits.grid, from + (sameLife ? life : upTo(limits.grid)));
    const release = rng() < 0.2 ? Math.min(deadline, from + upTo(8)) : from;
    const instants: number[] = [];
    for (let at = release; at <= deadline; at += 1) if (!closed[at]) instants.push(at);
    if (instants.length > 0) jobs.push({ release, deadline });
    else fixed.push(deadline);
    choices.push(instants.length > 0 ? instants : [deadline]);
  }
  return { problem: { jobs, fixed, open: openOf(closed) }, choices };
}

function openOf(closed: readonly boolean[]): OpenTime {
  const lows: number[] = [];
  const highs: number[] = [];
  closed.forEach((shut, at) => {
    if (shut) return;
    if (at === 0 || closed[at - 1]) lows.push(at);
    if (at === closed.length - 1 || closed[at + 1]) highs.push(at);
  });
  return { lows, highs };
}

/** Whether the jobs can take these slots: each one inside its range, and all a gap apart. */
function holds(problem: SpacingProblem, slots: Float64Array, gap: number): boolean {
  const jobs = problem.jobs.map((job, rank) => ({ ...job, zone: "", rank }));
  const taken = assignSlots(slots, jobs);
  const inside = taken.every((job, at) => {
    const slot = slots[at] ?? Number.NaN;
    const open = problem.open.lows.some(
      (low, i) => low <= slot && slot <= (problem.open.highs[i] ?? 0),
    );
    return open && job.release <= slot && slot <= job.deadline;
  });
  const all = smallestGapMs([...slots, ...problem.fixed]);
  return inside && taken.length === problem.jobs.length && (all === null || all >= gap);
}

function sum(instants: Iterable<number>): number {
  return [...instants].reduce((total, at) => total + at, 0);
}

const seeds = Array.from({ length: 40 }, (_, block) => [block]);

describe("compared with an oracle that tries everything", () => {
  it.each(seeds)("the best gap is the largest possible: block %i of 100 fleets", (block) => {
    for (let seed = block * 100; seed < block * 100 + 100; seed += 1) {
      const { problem, choices } = randomCase(seed, { nodes: 8, grid: 40 });
      expect(bestGapMs(spacingOf(problem)), `seed ${seed}`).toBe(widestGap(choices));
    }
  });

  it.each(seeds)("Even reaches the best gap: block %i of 100 fleets", (block) => {
    for (let seed = block * 100; seed < block * 100 + 100; seed += 1) {
      const { problem } = randomCase(seed, { nodes: 8, grid: 40 });
      if (problem.jobs.length === 0) continue;
      const slots = evenInstants(spacingOf(problem), 0);
      expect(holds(problem, slots, bestGapMs(spacingOf(problem)) ?? 0), `seed ${seed}`).toBe(true);
    }
  });

  it.each(seeds)("Late has the largest sum: block %i of 50 fleets", (block) => {
    for (let seed = block * 50; seed < block * 50 + 50; seed += 1) {
      const { problem, choices } = randomCase(seed, { nodes: 5, grid: 24 });
      const best = bestGapMs(spacingOf(problem)) ?? 0;
      const gap = Math.min(best, seed % 7);
      const slots = lateInstants(spacingOf(problem), gap) ?? new Float64Array();
      expect(holds(problem, slots, gap), `seed ${seed}`).toBe(true);
      expect(sum([...slots, ...problem.fixed]), `seed ${seed}`).toBe(largestSum(choices, gap));
    }
  });

  it("Early and Late find a schedule if and only if the gap can be kept", () => {
    for (let seed = 0; seed < 1000; seed += 1) {
      const { problem, choices } = randomCase(seed, { nodes: 6, grid: 30 });
      const gap = 1 + (seed % 9);
      const apart = (smallestGapMs(problem.fixed) ?? gap) >= gap;
      const wanted = canKeepGap(choices, gap);
      expect(apart && earlyInstants(spacingOf(problem), gap) !== undefined, `seed ${seed}`).toBe(
        wanted,
      );
      expect(apart && lateInstants(spacingOf(problem), gap) !== undefined, `seed ${seed}`).toBe(
        wanted,
      );
    }
  });
});
