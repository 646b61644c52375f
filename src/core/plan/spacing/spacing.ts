import { keptAway, mirrored, nextOpen, type OpenTime, previousOpen } from "../../limits/gate.ts";
import { largest } from "./largest.ts";
import {
  earliestSlots,
  mirroredRanges,
  rangesOf,
  type SortedRanges,
  type StartRange,
} from "./slot-assignment.ts";

/**
 * When the nodes of one policy may leave. Numbers are whole milliseconds since 1970. Each job has
 * at least one open instant in its range.
 */
export interface SpacingProblem {
  readonly jobs: readonly StartRange[];
  readonly open: OpenTime;
  /** Departures whose instants cannot be chosen. They count in every gap. */
  readonly fixed: readonly number[];
  readonly lastStart?: LastStart | undefined;
}

/**
 * The newest start so far. It is a neighbour like any other, except for a node whose deadline is
 * less than `leastGap` after it: the past cannot be changed, and the other nodes must not suffer
 * for it.
 */
export interface LastStart {
  readonly at: number;
  readonly leastGap: number;
}

/** A problem with its parts sorted, computed once for all queries. */
export interface Spacing {
  readonly problem: SpacingProblem;
  readonly ranges: SortedRanges;
  /** The fixed departures, sorted. */
  readonly walls: readonly number[];
}

/** Narrows each range to open instants at both ends, which brings more of them into order. */
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
 * The largest minimum gap between neighbours that any plan can have, in milliseconds; null for
 * fewer than two departures, 0 if two must leave at the same instant. Exact to the millisecond: if
 * a gap is possible, so is every smaller one, so a binary search over whole milliseconds finds the
 * largest.
 */
export function bestGapMs(spacing: Spacing): number | null {
  const { jobs, fixed } = spacing.problem;
  if (jobs.length + fixed.length < 2) return null;
  const limit = smallestGapMs(fixed) ?? Number.POSITIVE_INFINITY;
  return jobs.length === 0 ? limit : widestGap(spacing, { kept: 0, limit });
}

/**
 * The latest instants that keep `gapMs` between any two and from the fixed ones: the k-th is as
 * late as the k-th of any plan can be, so their sum is maximal. Undefined if the gap is impossible.
 */
export function lateInstants(spacing: Spacing, gapMs: number): Float64Array | undefined {
  const ranges = mirroredRanges(afterLastStart(spacing, gapMs));
  const open = mirrored(keptAway(spacing.problem.open, spacing.walls, gapMs));
  return earliestSlots({ ranges, open }, gapMs)
    ?.map((slot) => -slot)
    .reverse();
}

/** Like `lateInstants`, with the earliest instants. */
export function earlyInstants(spacing: Spacing, gapMs: number): Float64Array | undefined {
  const ranges = afterLastStart(spacing, gapMs);
  const open = keptAway(spacing.problem.open, spacing.walls, gapMs);
  return earliestSlots({ ranges, open }, gapMs);
}

/**
 * The largest gap that the jobs can keep from each other and from the fixed ones; `kept` is a gap
 * known to be possible.
 */
export function freeGapMs(spacing: Spacing, kept: number): number {
  const limit = Number.POSITIVE_INFINITY;
  // Usually `kept` is the largest already: one check instead of a search.
  if (kept > 0 && earlyInstants(spacing, kept + 1) === undefined) return kept;
  return widestGap(spacing, { kept, limit });
}

/** The smallest gap between neighbours in time; null for fewer than two instants. */
export function smallestGapMs(instants: readonly number[]): number | null {
  return smallestStepMs(Float64Array.from(instants).sort());
}

/** Like `smallestGapMs`, for sorted instants. */
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
  // Whole milliseconds, whatever the instants are: otherwise the search might never end.
  const limit = Math.floor(Math.min(from.limit, gapBound(spacing)));
  const canKeep = (gap: number): boolean => earlyInstants(spacing, gap) !== undefined;
  return largest({ kept: from.kept, limit }, canKeep);
}

/** An upper bound: the free departures alone share the time from the first to the last. */
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
 * The first instant far enough from the newest start for a job with this deadline; -Infinity if the
 * job is exempt because it has no room.
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
  // If both are in the same order, the jobs without room come first, and all others stay sorted.
  if (disorder === undefined) return { releases: moved, deadlines, disorder };
  return rangesOf(moved, deadlines);
}
