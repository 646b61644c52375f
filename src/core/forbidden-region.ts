import { type ClosedRange, type OpenTime, previousOpen, rangeIndexAt } from "./open-time.ts";
import { RankSet } from "./rank-set.ts";
import type { SlotProblem } from "./start-slot.ts";

/**
 * The starts that no schedule with this gap can use, sorted, beyond those that are closed anyway;
 * undefined where no schedule exists. Source: Garey, Johnson, Simons and Tarjan 1981, section 3.
 *
 * For each release time r, latest first, the jobs that come at r or after are laid as late as their
 * deadlines allow. If the first of them must start at c < r, nothing works. If r <= c < r + gap,
 * any job that starts after c - gap and before r would push it past c: that region is forbidden.
 *
 * The late schedule is kept as blocks of starts that stand as closely as they can, so that a job
 * costs a look at its neighbours and every block is merged away at most once: O(n log n), plus the
 * closed ranges inside merged blocks.
 */
export function forbiddenRegions(
  problem: SlotProblem,
  gap: number,
): readonly ClosedRange[] | undefined {
  const { releases, deadlines } = problem.jobs;
  const late = new LateSchedule(problem, gap);
  for (let at = releases.length - 1; at >= 0; at -= 1) {
    const release = releases[at] as number;
    const first = late.add(deadlines[at] as number);
    if (first < release) return undefined;
    if (releases[at - 1] !== release) late.forbid({ low: first - gap + 1, high: release - 1 });
  }
  return late.forbidden();
}

/** Jobs with deadlines only, each as late as possible; grows by one job at a time. */
class LateSchedule {
  readonly #gap: number;
  readonly #regions: RegionStack;
  /** Distinct deadlines in order; a block is known by the rank of its latest deadline. */
  readonly #deadlines: Float64Array;
  readonly #blocks: RankSet;
  readonly #last: Float64Array;
  readonly #first: Float64Array;
  readonly #count: Uint32Array;

  constructor(problem: SlotProblem, gap: number) {
    const all = problem.jobs.deadlines.slice().sort();
    this.#deadlines = all.filter((deadline, at) => deadline !== all[at - 1]);
    this.#gap = gap;
    this.#regions = new RegionStack(problem.open);
    this.#blocks = new RankSet(this.#deadlines.length);
    this.#last = new Float64Array(this.#deadlines.length);
    this.#first = new Float64Array(this.#deadlines.length);
    this.#count = new Uint32Array(this.#deadlines.length);
  }

  /** Adds a job and gives the first start of the whole schedule; -Infinity where it has none. */
  add(deadline: number): number {
    const rank = this.#rankOf(deadline);
    const block = this.#blocks.atOrAbove(rank);
    const room = block < 0 ? Number.POSITIVE_INFINITY : this.#at(this.#first, block) - this.#gap;
    if (deadline > room) {
      this.#first[block] = this.#regions.previous(room);
      this.#count[block] = this.#at(this.#count, block) + 1;
      this.#mergeLeftOf(block);
    } else {
      const start = this.#regions.previous(deadline);
      this.#last[rank] = start;
      this.#first[rank] = start;
      this.#count[rank] = 1;
      this.#blocks.add(rank);
      this.#mergeLeftOf(rank);
    }
    return this.#at(this.#first, this.#blocks.atOrAbove(0));
  }

  forbid(region: ClosedRange): void {
    this.#regions.push(region);
  }

  forbidden(): readonly ClosedRange[] {
    return this.#regions.pushed();
  }

  /** A block that has grown may reach the one before it: the two become one. */
  #mergeLeftOf(block: number): void {
    let left = this.#blocks.below(block);
    while (left >= 0 && this.#at(this.#last, left) > this.#at(this.#first, block) - this.#gap) {
      const count = this.#at(this.#count, left);
      this.#first[block] = this.#chain(this.#at(this.#first, block), count);
      this.#count[block] = this.#at(this.#count, block) + count;
      this.#blocks.delete(left);
      left = this.#blocks.below(block);
    }
  }

  /** The start of the `count`-th job before one at `from`, as closely as allowed. */
  #chain(from: number, count: number): number {
    let at = from;
    let rest = count;
    while (rest > 0 && at > Number.NEGATIVE_INFINITY) {
      at = this.#regions.previous(at - this.#gap);
      rest -= 1;
      const room = Math.floor((at - this.#regions.freeFrom(at)) / this.#gap);
      const steps = Math.min(rest, room || 0);
      at -= steps * this.#gap;
      rest -= steps;
    }
    return at;
  }

  #rankOf(deadline: number): number {
    let low = 0;
    let high = this.#deadlines.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#deadlines[middle] as number) < deadline) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #at(of: Float64Array | Uint32Array, rank: number): number {
    return of[rank] as number;
  }
}

/** Closed times: those of the windows, and the regions found so far, which come latest first. */
class RegionStack {
  readonly #open: OpenTime;
  readonly #lows: number[] = [];
  readonly #highs: number[] = [];

  constructor(open: OpenTime) {
    this.#open = open;
  }

  push({ low, high }: ClosedRange): void {
    if (low > high) return;
    const top = this.#lows.length - 1;
    const lowest = this.#lows[top];
    if (lowest !== undefined && lowest <= high + 1) this.#lows[top] = Math.min(lowest, low);
    else {
      this.#lows.push(low);
      this.#highs.push(high);
    }
  }

  pushed(): readonly ClosedRange[] {
    return this.#lows.map((low, at) => ({ low, high: this.#highs[at] as number })).reverse();
  }

  /** The last allowed instant at or before `at`; -Infinity where there is none. */
  previous(at: number): number {
    let found = previousOpen(this.#open, at);
    for (;;) {
      const region = this.#regionAtOrAbove(found);
      if (region < 0 || (this.#lows[region] as number) > found) return found;
      found = previousOpen(this.#open, (this.#lows[region] as number) - 1);
    }
  }

  /** How far back everything is allowed, from an allowed instant. */
  freeFrom(at: number): number {
    const range = rangeIndexAt(this.#open, at);
    const low = range < 0 ? at : (this.#open.lows[range] as number);
    const below = this.#highs[this.#regionAtOrAbove(at) + 1];
    return below === undefined ? low : Math.max(low, below + 1);
  }

  /** The index of the earliest region that does not end before `at`; -1 where all do. */
  #regionAtOrAbove(at: number): number {
    let low = 0;
    let high = this.#highs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#highs[middle] as number) >= at) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
