import { assignSlots, type Slotted } from "./slot-assignment.ts";
import {
  earlyInstants,
  freeGapMs,
  lateInstants,
  type Spacing,
  type SpacingProblem,
  spacingOf,
} from "./spacing.ts";

/**
 * Rounds of widening at most: each costs a search, and beyond a dozen bottlenecks nobody sees the
 * difference. Larger fleets get fewer, so that a plan stays a matter of milliseconds.
 */
const roundsAtMost = 12;
const jobsInAllRounds = 40_000;

/**
 * Instants as wide apart as possible: first the departures that hold the smallest gap down get
 * theirs, then the rest is spread as widely as these leave room, and so on. Without this a fleet
 * with one crowded hour would leave crowded all day. Sorted; keeps the best gap of `bestGapMs`
 * between all departures that have a choice. `kept` is a gap that can be kept.
 */
export function evenInstants(spacing: Spacing, kept: number): Float64Array {
  let left = spacing;
  let gap = kept;
  const settled: number[] = [];
  const rounds = Math.min(roundsAtMost, Math.ceil(jobsInAllRounds / left.problem.jobs.length));
  for (let round = 1; ; round += 1) {
    gap = freeGapMs(left, gap);
    const early = earlyInstants(left, gap) ?? new Float64Array();
    const late = lateInstants(left, gap) ?? early;
    const tight = round < rounds ? tightSlots(early, late) : new Set<number>();
    const done = tight.size === 0 || tight.size === early.length;
    // Among plans of one gap the latest is the best: a node that leaves early has lived for less.
    for (const slot of done ? late : early) if (done || tight.has(slot)) settled.push(slot);
    if (done) return Float64Array.from(settled).sort();
    left = spacingOf(withoutSlots(left.problem, { early, tight }));
  }
}

/**
 * Starts that could not move without narrowing the gap. The gap is cut to whole milliseconds, which
 * leaves up to one millisecond of play for each job.
 */
function tightSlots(early: Float64Array, late: Float64Array): ReadonlySet<number> {
  const play = early.length;
  return new Set(early.filter((slot, at) => (late[at] as number) - slot <= play));
}

interface Settling {
  readonly early: Float64Array;
  readonly tight: ReadonlySet<number>;
}

/** The problem that is left when the jobs at the tight slots have theirs. */
function withoutSlots(problem: SpacingProblem, { early, tight }: Settling): SpacingProblem {
  const jobs: readonly Slotted[] = problem.jobs.map((job, at) => ({
    ...job,
    zone: "",
    rank: at,
  }));
  const order = assignSlots(early, jobs);
  return {
    ...problem,
    jobs: order.filter((_, at) => !tight.has(early[at] as number)),
    fixed: [...problem.fixed, ...tight],
  };
}
