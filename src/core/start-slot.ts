import { forbiddenRegions } from "./forbidden-region.ts";
import { type OpenTime, withoutRanges } from "./open-time.ts";

/** When one node may start: from `release` to `deadline`, both included, whole milliseconds. */
export interface StartRange {
  readonly release: number;
  readonly deadline: number;
}

/**
 * Many of them, by release and then by deadline: the i-th job has `releases[i]` and `deadlines[i]`.
 * Plain arrays, because a search for the best gap passes over them some thirty times.
 */
export interface SortedRanges {
  readonly releases: Float64Array;
  readonly deadlines: Float64Array;
  /** Whether the deadlines are in order too. */
  readonly agreeable: boolean;
}

export interface SlotProblem {
  readonly jobs: SortedRanges;
  /** The instants that all jobs share; a fixed departure is a hole in it. */
  readonly open: OpenTime;
}

export function inStartOrder(a: StartRange, b: StartRange): number {
  return a.release - b.release || a.deadline - b.deadline;
}

/** Sorts `jobs`, which is handed over. */
export function sortRanges(jobs: StartRange[]): SortedRanges {
  jobs.sort(inStartOrder);
  const releases = new Float64Array(jobs.length);
  const deadlines = new Float64Array(jobs.length);
  let agreeable = true;
  jobs.forEach((job, at) => {
    releases[at] = job.release;
    deadlines[at] = job.deadline;
    if (at > 0 && job.deadline < (deadlines[at - 1] as number)) agreeable = false;
  });
  return { releases, deadlines, agreeable };
}

/** The same jobs with time run backwards. */
export function mirroredRanges({ releases, deadlines, agreeable }: SortedRanges): SortedRanges {
  const back = (of: Float64Array): Float64Array => of.map((at) => -at).reverse();
  if (agreeable) return { releases: back(deadlines), deadlines: back(releases), agreeable };
  const jobs = Array.from(releases, (release, at) => ({
    release: -(deadlines[at] as number),
    deadline: -release,
  }));
  return sortRanges(jobs);
}

/**
 * The earliest starts that keep `gap` between any two and each job inside its range: sorted, and
 * the k-th of them is no later than the k-th start of any other schedule, so their sum is the
 * smallest there is. Undefined where the gap cannot be kept. Which job takes which start is left to
 * `assignSlots`, because the starts do not depend on it.
 *
 * A gap between starts is a job of that length on one machine. Where release times and deadlines
 * are agreeable, taking the jobs in their order is optimal; where not, starts that would shut out
 * a more urgent job are forbidden first, after M. R. Garey, D. S. Johnson, B. B. Simons and
 * R. E. Tarjan, "Scheduling unit-time tasks with arbitrary release times and deadlines", SIAM
 * Journal on Computing 10(2), 1981. The closed times of `open` are forbidden for all jobs alike,
 * which is what their proof needs of a forbidden region.
 */
export function earliestSlots(problem: SlotProblem, gap: number): Float64Array | undefined {
  const { jobs, open } = problem;
  if (jobs.agreeable) return packed(problem, gap);
  const holes = gap > 0 ? forbiddenRegions(problem, gap) : [];
  if (holes === undefined) return undefined;
  // The forbidden regions have seen to the deadlines: any order of the jobs will do. Without a gap
  // no job is in the way of another.
  const deadlines = new Float64Array(jobs.deadlines.length).fill(Number.POSITIVE_INFINITY);
  return packed({ jobs: { ...jobs, deadlines }, open: withoutRanges(open, holes) }, gap);
}

/** One pass over the jobs in order and the open ranges in order. */
function packed({ jobs, open }: SlotProblem, gap: number): Float64Array | undefined {
  const { releases, deadlines } = jobs;
  const { lows, highs } = open;
  const slots = new Float64Array(releases.length);
  let range = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < slots.length; at += 1) {
    let start = Math.max(releases[at] as number, last + gap);
    while (range < highs.length && (highs[range] as number) < start) range += 1;
    if (range === highs.length) return undefined;
    start = Math.max(start, lows[range] as number);
    if (start > (deadlines[at] as number)) return undefined;
    slots[at] = start;
    last = start;
  }
  return slots;
}
