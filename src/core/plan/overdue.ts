import { keptAway, nextOpen, type OpenTime } from "../limits/open-time.ts";

/** A node that should have left already. */
export interface OverdueJob {
  /** It may not leave before. */
  readonly release: number;
}

export interface OverdueProblem {
  readonly open: OpenTime;
  /** Every departure that has its instant. */
  readonly others: readonly number[];
  /** How far an overdue departure keeps from every other one. */
  readonly gap: number;
}

/**
 * The earliest allowed instants for overdue nodes, one after the other in the order given (oldest
 * first), each at least the gap from every other departure. Infinity where the open times known here
 * have no room for one; so has every later one with the same release.
 */
export function overdueInstants(
  jobs: readonly OverdueJob[],
  problem: OverdueProblem,
): Float64Array {
  const { gap } = problem;
  const others = [...problem.others].sort((a, b) => a - b);
  const open = keptAway(problem.open, others, gap);
  const taken: number[] = [];
  const instants = new Float64Array(jobs.length);
  // What was no room for one job is none for the next with the same release.
  const searchedTo = new Map<number, number>();
  jobs.forEach(({ release }, at) => {
    const found = firstFit({ open, taken, gap }, searchedTo.get(release) ?? release);
    if (found < Number.POSITIVE_INFINITY) taken.splice(placeIn(taken, found), 0, found);
    searchedTo.set(release, found);
    instants[at] = found;
  });
  return instants;
}

export interface Capacity {
  readonly open: OpenTime;
  /** Sorted. */
  readonly taken: readonly number[];
  readonly gap: number;
}

/** The first instant from `from` on that is open and a gap from what is taken. */
export function firstFit({ open, taken, gap }: Capacity, from: number): number {
  let at = nextOpen(open, from);
  for (;;) {
    const place = placeIn(taken, at);
    const before = (taken[place - 1] ?? Number.NEGATIVE_INFINITY) + gap;
    const after = taken[place] ?? Number.POSITIVE_INFINITY;
    if (at === Number.POSITIVE_INFINITY || (before <= at && at + gap <= after)) return at;
    at = nextOpen(open, before > at ? before : after + gap);
  }
}

/** The index of the first taken instant at or after `at`. */
export function placeIn(taken: readonly number[], at: number): number {
  let low = 0;
  let high = taken.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((taken[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
