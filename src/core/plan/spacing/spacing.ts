import {
  keptAway,
  mirrored,
  nextOpen,
  type OpenTime,
  previousOpen,
} from "../../limits/open-time.ts";
import {
  earliestSlots,
  mirroredRanges,
  rangesOf,
  type SortedRanges,
  type StartRange,
} from "./slot-assignment.ts";

/**
 * Where the nodes of one policy may leave: plain numbers are whole milliseconds since 1970. Each
 * job has at least one open instant in its range.
 */
export interface SpacingProblem {
  readonly jobs: readonly StartRange[];
  readonly open: OpenTime;
  /** Departures whose instant is not ours to choose. They count in every gap. */
  readonly fixed: readonly number[];
  readonly lastStart?: LastStart | undefined;
}

/**
 * The newest start that has happened. It is a neighbour like any other, but for a node whose
 * deadline does not even leave it `leastGap` from it: the past cannot be moved, and the others are
 * not to suffer for it.
 */
export interface LastStart {
  readonly at: number;
  readonly leastGap: number;
}

/** A problem with its parts in order: worked out once for every question about it. */
export interface Spacing {
  readonly problem: SpacingProblem;
  readonly ranges: SortedRanges;
  /** The fixed departures in order. */
  readonly walls: readonly number[];
}

/**
 * Each range is narrowed to open instants at both its ends, which brings more of them into order.
 */
export function spacingOf(problem: SpacingProblem): Spacing {
  const { jobs, open, fixed } = problem;
  const releases = new Float64Array(jobs.length);
  const deadlines = new Float64Array(jobs.length);
  jobs.forEach((job, at) => {
    releases[at] = nextOpen(open, job.release);
    deadlines[at] = previousOpen(open, job.deadline);
  });
  return {
    problem,
    ranges: rangesOf(releases, deadlines),
    walls: [...fixed].sort((a, b) => a - b),
  };
}

/**
 * The largest smallest gap between neighbours that any plan could have, in milliseconds; null under
 * two departures, 0 where two must leave at one instant. Exact to the millisecond: a gap that can
 * be kept leaves every smaller one possible too, so a search by halves over whole milliseconds
 * finds the largest.
 */
export function bestGapMs(spacing: Spacing): number | null {
  const { jobs, fixed } = spacing.problem;
  if (jobs.length + fixed.length < 2) return null;
  const limit = smallestGapMs(fixed) ?? Number.POSITIVE_INFINITY;
  return jobs.length === 0 ? limit : widestGap(spacing, { kept: 0, limit });
}

/**
 * The latest instants that keep `gapMs` between any two and from the fixed ones: the k-th is as
 * late as the k-th of any plan can be, so their sum is the largest. Undefined where the gap cannot
 * be kept.
 */
export function lateInstants(spacing: Spacing, gapMs: number): Float64Array | undefined {
  const ranges = mirroredRanges(afterLastStart(spacing, gapMs));
  const open = mirrored(keptAway(spacing.problem.open, spacing.walls, gapMs));
  return earliestSlots({ ranges, open }, gapMs)
    ?.map((slot) => -slot)
    .reverse();
}

/** The earliest instants of that kind. */
export function earlyInstants(spacing: Spacing, gapMs: number): Float64Array | undefined {
  const ranges = afterLastStart(spacing, gapMs);
  const open = keptAway(spacing.problem.open, spacing.walls, gapMs);
  return earliestSlots({ ranges, open }, gapMs);
}

/**
 * The largest gap that the jobs can keep between each other and from what is fixed, where `kept` is
 * one that they can.
 */
export function freeGapMs(spacing: Spacing, kept: number): number {
  const limit = Number.POSITIVE_INFINITY;
  // More often than not that is the largest: one look instead of a search.
  if (kept > 0 && earlyInstants(spacing, kept + 1) === undefined) return kept;
  return widestGap(spacing, { kept, limit });
}

/** The smallest gap between neighbours in time; null under two instants. */
export function smallestGapMs(instants: readonly number[]): number | null {
  return smallestStepMs(Float64Array.from(instants).sort());
}

/** The same of instants that are sorted. */
export function smallestStepMs(sorted: ArrayLike<number>): number | null {
  if (sorted.length < 2) return null;
  let smallest = Number.POSITIVE_INFINITY;
  for (let at = 1; at < sorted.length; at += 1) {
    smallest = Math.min(smallest, (sorted[at] as number) - (sorted[at - 1] as number));
  }
  return smallest;
}

function widestGap(
  spacing: Spacing,
  from: { readonly kept: number; readonly limit: number },
): number {
  let { kept } = from;
  let lost = Math.min(from.limit, gapBound(spacing)) + 1;
  while (lost - kept > 1) {
    const gap = Math.floor((kept + lost) / 2);
    if (earlyInstants(spacing, gap) === undefined) lost = gap;
    else kept = gap;
  }
  return kept;
}

/** No gap can be wider: the free departures alone have to share the time from first to last. */
function gapBound({ problem, ranges }: Spacing): number {
  const { fixed, lastStart } = problem;
  const { releases, deadlines } = ranges;
  const first = releases[0] ?? 0;
  const last = deadlines.reduce((a, b) => Math.max(a, b), first);
  if (releases.length > 1) return Math.floor((last - first) / (releases.length - 1));
  let bound = lastStart === undefined ? Number.POSITIVE_INFINITY : Math.max(0, last - lastStart.at);
  for (const at of fixed) {
    bound = Math.min(bound, Math.max(Math.abs(at - first), Math.abs(at - last)));
  }
  // A lone departure has no neighbour to keep a gap from.
  return Number.isFinite(bound) ? bound : 0;
}

/**
 * When a job with this deadline is far enough from the newest start; it need not be if it cannot.
 */
export function clearFrom(lastStart: LastStart | undefined, deadline: number, gap: number): number {
  if (lastStart === undefined) return Number.NEGATIVE_INFINITY;
  const { at, leastGap } = lastStart;
  return deadline < at + leastGap ? Number.NEGATIVE_INFINITY : at + gap;
}

function afterLastStart({ problem, ranges }: Spacing, gap: number): SortedRanges {
  const { lastStart } = problem;
  const { releases, deadlines, disorder } = ranges;
  if (lastStart === undefined || (releases[0] ?? 0) >= lastStart.at + gap) return ranges;
  const moved = releases.map((release, at) =>
    Math.max(release, clearFrom(lastStart, deadlines[at] as number, gap)),
  );
  // In one order those without room come first, and all that follow stay in order.
  if (disorder === undefined) return { releases: moved, deadlines, disorder };
  return rangesOf(moved, deadlines);
}
