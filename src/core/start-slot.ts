import { forbiddenRegions } from "./forbidden-region.ts";
import { nextOpen, type OpenTime, withoutRanges } from "./open-time.ts";

/** When one node may start: from `release` to `deadline`, both included, whole milliseconds. */
export interface StartRange {
  readonly release: number;
  readonly deadline: number;
}

export interface SlotProblem {
  /** Sorted by `inStartOrder`. */
  readonly jobs: readonly StartRange[];
  /** The instants that all jobs share; a fixed departure is a hole in it. */
  readonly open: OpenTime;
}

export function inStartOrder(a: StartRange, b: StartRange): number {
  return a.release - b.release || a.deadline - b.deadline;
}

/** Whether release times and deadlines come in the same order; `jobs` is sorted by `inStartOrder`. */
export function isAgreeable(jobs: readonly StartRange[]): boolean {
  let latest = Number.NEGATIVE_INFINITY;
  for (const job of jobs) {
    if (job.deadline < latest) return false;
    latest = job.deadline;
  }
  return true;
}

/** The same problem with time run backwards, sorted anew. */
export function mirroredJobs(jobs: readonly StartRange[]): readonly StartRange[] {
  return jobs.map((job) => ({ release: -job.deadline, deadline: -job.release })).sort(inStartOrder);
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
  if (gap <= 0) return withoutGap(problem);
  if (isAgreeable(jobs)) return packed(problem, gap);
  const holes = forbiddenRegions(problem, gap);
  if (holes === undefined) return undefined;
  return packed({ jobs: withoutDeadlines(jobs), open: withoutRanges(open, holes) }, gap);
}

/** Each job as early as its own range allows. */
function withoutGap({ jobs, open }: SlotProblem): Float64Array | undefined {
  const slots = Float64Array.from(jobs, (job) => nextOpen(open, job.release));
  if (jobs.some((job, at) => (slots[at] as number) > job.deadline)) return undefined;
  return slots.sort();
}

/** One pass over the jobs in order and the open ranges in order. */
function packed({ jobs, open }: SlotProblem, gap: number): Float64Array | undefined {
  const { lows, highs } = open;
  const slots = new Float64Array(jobs.length);
  let range = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < jobs.length; at += 1) {
    const job = jobs[at] as StartRange;
    let start = Math.max(job.release, last + gap);
    while (range < highs.length && (highs[range] as number) < start) range += 1;
    if (range === highs.length) return undefined;
    start = Math.max(start, lows[range] as number);
    if (start > job.deadline) return undefined;
    slots[at] = start;
    last = start;
  }
  return slots;
}

/** The forbidden regions have seen to the deadlines; the order of the jobs no longer matters. */
function withoutDeadlines(jobs: readonly StartRange[]): readonly StartRange[] {
  return jobs.map((job) => ({ release: job.release, deadline: Number.POSITIVE_INFINITY }));
}
