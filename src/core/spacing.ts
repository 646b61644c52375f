import { keptAway, mirrored, nextOpen, type OpenTime, previousOpen } from "./open-time.ts";
import {
  earliestSlots,
  mirroredRanges,
  type SortedRanges,
  type StartRange,
  sortRanges,
} from "./start-slot.ts";

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

/** A problem with its parts in order. */
interface Prepared {
  readonly jobs: SortedRanges;
  readonly open: OpenTime;
  readonly fixed: readonly number[];
  readonly lastStart: number | undefined;
}

/** Each range is narrowed to open instants at both its ends, which brings more of them into order. */
function prepare({ jobs, open, fixed, lastStart }: SpacingProblem): Prepared {
  const narrowed = jobs.map((job) => {
    const release = nextOpen(open, job.release);
    const deadline = previousOpen(open, job.deadline);
    return release === job.release && deadline === job.deadline ? job : { release, deadline };
  });
  const walls = [...fixed].sort((a, b) => a - b);
  return { jobs: sortRanges(narrowed), open, fixed: walls, lastStart };
}

function widestGap(problem: Prepared, limit: number): number {
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
function gapBound({ jobs, fixed, lastStart }: Prepared): number {
  const { releases, deadlines } = jobs;
  const first = releases[0] ?? 0;
  const last = deadlines.reduce((a, b) => Math.max(a, b), first);
  if (releases.length > 1) return Math.floor((last - first) / (releases.length - 1));
  let bound = lastStart === undefined ? Number.POSITIVE_INFINITY : Math.max(0, last - lastStart);
  for (const at of fixed) {
    bound = Math.min(bound, Math.max(Math.abs(at - first), Math.abs(at - last)));
  }
  // A lone departure has no neighbour to keep a gap from.
  return Number.isFinite(bound) ? bound : 0;
}

function earliest(problem: Prepared, gap: number): Float64Array | undefined {
  const jobs = afterLastStart(problem, gap);
  return earliestSlots({ jobs, open: keptAway(problem.open, problem.fixed, gap) }, gap);
}

function latest(problem: Prepared, gap: number): Float64Array | undefined {
  const jobs = mirroredRanges(afterLastStart(problem, gap));
  const open = mirrored(keptAway(problem.open, problem.fixed, gap));
  return earliestSlots({ jobs, open }, gap)
    ?.map((slot) => -slot)
    .reverse();
}

/** Keeps the gap from the newest start, but for jobs whose deadline leaves no room for it. */
function afterLastStart({ jobs, lastStart }: Prepared, gap: number): SortedRanges {
  const clearAt = lastStart === undefined ? Number.NEGATIVE_INFINITY : lastStart + gap;
  const { releases, deadlines, agreeable } = jobs;
  if ((releases[0] ?? clearAt) >= clearAt) return jobs;
  const moved = releases.map((release, at) =>
    release >= clearAt || (deadlines[at] as number) < clearAt ? release : clearAt,
  );
  // In agreeable order those without room come first, and all that follow stay in order.
  if (agreeable) return { releases: moved, deadlines, agreeable };
  return sortRanges(
    Array.from(moved, (release, at) => ({ release, deadline: deadlines[at] as number })),
  );
}
