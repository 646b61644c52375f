import { type OpenTime, withoutRanges } from "../../limits/open-time.ts";
import { type DeadlineOrder, forbiddenRegions } from "./forbidden-region.ts";

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
  /** The deadlines by themselves where they are in another order; undefined where in the same. */
  readonly disorder: DeadlineOrder | undefined;
}

export interface SlotProblem {
  readonly ranges: SortedRanges;
  /** The instants that all jobs share; a fixed departure is a hole in it. */
  readonly open: OpenTime;
}

export function inStartOrder(a: StartRange, b: StartRange): number {
  return a.release - b.release || a.deadline - b.deadline;
}

/** Of the i-th job of each; sorted where they are not. */
export function rangesOf(releases: Float64Array, deadlines: Float64Array): SortedRanges {
  if (isSorted(releases) && isSorted(deadlines))
    return { releases, deadlines, disorder: undefined };
  const jobs = Array.from(releases, (release, at) => ({ release, deadline: deadlines[at] ?? 0 }));
  jobs.sort(inStartOrder);
  const inOrder = Float64Array.from(jobs, (job) => job.deadline);
  return {
    releases: Float64Array.from(jobs, (job) => job.release),
    deadlines: inOrder,
    disorder: isSorted(inOrder) ? undefined : deadlineOrderOf(inOrder),
  };
}

function isSorted(values: Float64Array): boolean {
  for (let at = 1; at < values.length; at += 1) {
    if ((values[at] as number) < (values[at - 1] as number)) return false;
  }
  return true;
}

function deadlineOrderOf(deadlines: Float64Array): DeadlineOrder {
  const sorted = deadlines.slice().sort();
  const distinct = sorted.filter((deadline, at) => deadline !== sorted[at - 1]);
  return {
    deadlines: distinct,
    ranks: Uint32Array.from(deadlines, (one) => rankIn(distinct, one)),
  };
}

/** The index of the first of the sorted numbers at or above `value`. */
function rankIn(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The same jobs with time run backwards. */
export function mirroredRanges({ releases, deadlines }: SortedRanges): SortedRanges {
  const back = (of: Float64Array): Float64Array => of.map((at) => -at).reverse();
  return rangesOf(back(deadlines), back(releases));
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
  const { releases, deadlines, disorder } = problem.ranges;
  if (disorder === undefined) return packed({ releases, deadlines, open: problem.open }, gap);
  // Without a gap no job is in the way of another.
  if (gap <= 0) return packed({ releases, open: problem.open }, gap);
  const holes = forbiddenRegions({ releases, disorder, open: problem.open }, gap);
  // The forbidden regions have seen to the deadlines: any order of the jobs will do.
  return holes && packed({ releases, open: withoutRanges(problem.open, holes) }, gap);
}

interface Packing {
  readonly releases: Float64Array;
  readonly deadlines?: Float64Array;
  readonly open: OpenTime;
}

/** One pass over the jobs in order and the open ranges in order. */
function packed({ releases, deadlines, open }: Packing, gap: number): Float64Array | undefined {
  const { lows, highs } = open;
  const slots = new Float64Array(releases.length);
  let range = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < slots.length; at += 1) {
    let start = Math.max(releases[at] as number, last + gap);
    while (range < highs.length && (highs[range] as number) < start) range += 1;
    if (range === highs.length) return undefined;
    start = Math.max(start, lows[range] as number);
    if (deadlines !== undefined && start > (deadlines[at] as number)) return undefined;
    slots[at] = start;
    last = start;
  }
  return slots;
}
