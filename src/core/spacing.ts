import { keptAway, mirrored, nextOpen, type OpenTime, previousOpen } from "./open-time.ts";
import { earliestSlots, inStartOrder, mirroredJobs, type StartRange } from "./start-slot.ts";

/**
 * Where the nodes of one policy may leave: plain numbers are whole milliseconds since 1970. Each
 * job has at least one open instant in its range.
 */
export interface SpacingProblem {
  readonly jobs: readonly StartRange[];
  readonly open: OpenTime;
  /** Departures whose instant is not ours to choose. They count in every gap. */
  readonly fixed: readonly number[];
  /** The newest start that has happened: every node that can keeps away from it as well. */
  readonly lastStart?: number | undefined;
}

/**
 * The largest smallest gap between neighbours that any plan could have, in milliseconds; null under
 * two departures, 0 where two must leave at one instant. Exact to the millisecond: a gap that can be
 * kept leaves every smaller one possible too, so a search by halves over whole milliseconds finds
 * the largest.
 */
export function bestGapMs(problem: SpacingProblem): number | null {
  if (problem.jobs.length + problem.fixed.length < 2) return null;
  const limit = smallestGapMs(problem.fixed) ?? Number.POSITIVE_INFINITY;
  return problem.jobs.length === 0 ? limit : widestGap(prepare(problem), limit);
}

/**
 * The latest instants that keep `gapMs` between any two and from the fixed ones: the k-th is as late
 * as the k-th of any plan can be, so their sum is the largest. Undefined where the gap cannot be kept.
 */
export function lateInstants(problem: SpacingProblem, gapMs: number): Float64Array | undefined {
  return latest(prepare(problem), gapMs);
}

/** The earliest instants of that kind. */
export function earlyInstants(problem: SpacingProblem, gapMs: number): Float64Array | undefined {
  return earliest(prepare(problem), gapMs);
}

/** The largest gap that the jobs can keep between each other and from what is fixed. */
export function freeGapMs(problem: SpacingProblem): number {
  return widestGap(prepare(problem), Number.POSITIVE_INFINITY);
}

/** The smallest gap between neighbours in time; null under two instants. */
export function smallestGapMs(instants: Iterable<number>): number | null {
  const sorted = Float64Array.from(instants).sort();
  if (sorted.length < 2) return null;
  let smallest = Number.POSITIVE_INFINITY;
  for (let at = 1; at < sorted.length; at += 1) {
    smallest = Math.min(smallest, (sorted[at] as number) - (sorted[at - 1] as number));
  }
  return smallest;
}

/** The problem with sorted parts, and each range narrowed to open instants at both its ends. */
function prepare(problem: SpacingProblem): SpacingProblem {
  const { open } = problem;
  const narrowed = problem.jobs.map((job) => ({
    release: nextOpen(open, job.release),
    deadline: previousOpen(open, job.deadline),
  }));
  const fixed = [...problem.fixed].sort((a, b) => a - b);
  return { ...problem, jobs: narrowed.sort(inStartOrder), fixed };
}

function widestGap(problem: SpacingProblem, limit: number): number {
  let kept = 0;
  let lost = Math.min(limit, gapBound(problem)) + 1;
  while (lost - kept > 1) {
    const gap = Math.floor((kept + lost) / 2);
    if (earliest(problem, gap) === undefined) lost = gap;
    else kept = gap;
  }
  return kept;
}

/** No gap can be wider: the free departures alone have to share the time from first to last. */
function gapBound({ jobs, fixed }: SpacingProblem): number {
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  for (const job of jobs) {
    first = Math.min(first, job.release);
    last = Math.max(last, job.deadline);
  }
  if (jobs.length > 1) return Math.floor((last - first) / (jobs.length - 1));
  const lone = fixed.map((at) => Math.max(Math.abs(at - first), Math.abs(at - last)));
  return lone.reduce((least, distance) => Math.min(least, distance), Number.POSITIVE_INFINITY);
}

function earliest(problem: SpacingProblem, gap: number): Float64Array | undefined {
  const jobs = afterLastStart(problem, gap);
  return earliestSlots({ jobs, open: keptAway(problem.open, problem.fixed, gap) }, gap);
}

function latest(problem: SpacingProblem, gap: number): Float64Array | undefined {
  const jobs = mirroredJobs(afterLastStart(problem, gap));
  const open = mirrored(keptAway(problem.open, problem.fixed, gap));
  return earliestSlots({ jobs, open }, gap)
    ?.map((slot) => -slot)
    .reverse();
}

/** Keeps the gap from the newest start, but for jobs whose deadline leaves no room for it. */
function afterLastStart(problem: SpacingProblem, gap: number): readonly StartRange[] {
  const { jobs, lastStart } = problem;
  const first = jobs[0];
  if (first === undefined || lastStart === undefined || first.release >= lastStart + gap) {
    return jobs;
  }
  const clearAt = lastStart + gap;
  const moved = jobs.map((job) =>
    job.release >= clearAt || job.deadline < clearAt ? job : { ...job, release: clearAt },
  );
  return moved.sort(inStartOrder);
}
