import { type ClosedRanges, type OpenTime, previousOpen, rangeIndexAt } from "../../limits/gate.ts";

/** Deadlines in a different order than the releases, computed once for all gaps. */
export interface DeadlineOrder {
  /** Distinct deadlines, sorted. */
  readonly deadlines: Float64Array;
  /** The index of the i-th job's deadline among them. */
  readonly ranks: Uint32Array;
}

export interface DisorderedJobs {
  /** Sorted. */
  readonly releases: Float64Array;
  readonly disorder: DeadlineOrder;
  readonly open: OpenTime;
}

/**
 * The starts that no schedule with this gap can use, sorted, in addition to closed times; undefined
 * if no schedule exists. Source: Garey, Johnson, Simons and Tarjan 1981, section 3.
 *
 * For each release time r, latest first, the jobs released at r or later are placed as late as
 * their deadlines allow. If the first of them must start at c < r, no schedule exists. If
 * `r <= c < r + gap`, any job that starts after c - gap and before r would push it past c: that
 * region is forbidden.
 *
 * The late schedule is kept as blocks of starts as close together as possible. Adding a job only
 * checks its neighbours, and every block is merged away at most once: O(n log n), plus the closed
 * ranges inside merged blocks.
 */
export function forbiddenRegions(
  { releases, disorder, open }: DisorderedJobs,
  gap: number,
): ClosedRanges | undefined {
  const late = new LateSchedule({ deadlines: disorder.deadlines, open, gap });
  for (let at = releases.length - 1; at >= 0; at -= 1) {
    const release = releases[at] as number;
    const first = late.add(disorder.ranks[at] as number);
    if (first < release) return undefined;
    if (releases[at - 1] !== release) late.forbid(first - gap + 1, release - 1);
  }
  return late.forbidden();
}

/** Jobs with deadlines only, each as late as possible. Jobs are added one at a time. */
class LateSchedule {
  readonly #gap: number;
  readonly #regions: RegionStack;
  /** Distinct deadlines, sorted; a block is identified by the rank of its latest deadline. */
  readonly #deadlines: Float64Array;
  readonly #blocks: RankSet;
  readonly #last: Float64Array;
  readonly #first: Float64Array;
  readonly #count: Uint32Array;

  constructor(about: {
    readonly deadlines: Float64Array;
    readonly open: OpenTime;
    readonly gap: number;
  }) {
    const { deadlines, open, gap } = about;
    this.#deadlines = deadlines;
    this.#gap = gap;
    this.#regions = new RegionStack(open);
    this.#blocks = new RankSet(deadlines.length);
    this.#last = new Float64Array(deadlines.length);
    this.#first = new Float64Array(deadlines.length);
    this.#count = new Uint32Array(deadlines.length);
  }

  /**
   * Adds a job, given by the rank of its deadline, and returns the first start of the whole
   * schedule; -Infinity if there is none.
   */
  add(rank: number): number {
    const deadline = this.#at(this.#deadlines, rank);
    const block = this.#blocks.atOrAbove(rank);
    const capacity =
      block < 0 ? Number.POSITIVE_INFINITY : this.#at(this.#first, block) - this.#gap;
    if (deadline > capacity) {
      this.#first[block] = this.#regions.previous(capacity);
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

  /** Both ends are included; regions are added latest first. */
  forbid(low: number, high: number): void {
    this.#regions.push(low, high);
  }

  forbidden(): ClosedRanges {
    return this.#regions.pushed();
  }

  /** Merges a block that has grown with the blocks before it that it now reaches. */
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

  /** The start of the `count`-th job before one at `from`, as close together as allowed. */
  #chain(from: number, count: number): number {
    let at = from;
    let rest = count;
    while (rest > 0 && at > Number.NEGATIVE_INFINITY) {
      at = this.#regions.previous(at - this.#gap);
      rest -= 1;
      const capacity = Math.floor((at - this.#regions.freeFrom(at)) / this.#gap);
      const steps = Math.min(rest, capacity || 0);
      at -= steps * this.#gap;
      rest -= steps;
    }
    return at;
  }

  #at(of: Float64Array | Uint32Array, rank: number): number {
    return of[rank] as number;
  }
}

/** Closed times: those outside the windows, and the regions found so far, added latest first. */
class RegionStack {
  readonly #open: OpenTime;
  readonly #lows: number[] = [];
  readonly #highs: number[] = [];

  constructor(open: OpenTime) {
    this.#open = open;
  }

  push(low: number, high: number): void {
    if (low > high) return;
    const top = this.#lows.length - 1;
    const lowest = this.#lows[top];
    if (lowest !== undefined && lowest <= high + 1) this.#lows[top] = Math.min(lowest, low);
    else {
      this.#lows.push(low);
      this.#highs.push(high);
    }
  }

  pushed(): ClosedRanges {
    return { lows: this.#lows.toReversed(), highs: this.#highs.toReversed() };
  }

  /** The last allowed instant at or before `at`; -Infinity if there is none. */
  previous(at: number): number {
    let found = previousOpen(this.#open, at);
    for (;;) {
      const region = this.#regionAtOrAbove(found);
      if (region < 0 || (this.#lows[region] as number) > found) return found;
      found = previousOpen(this.#open, (this.#lows[region] as number) - 1);
    }
  }

  /** The instant since which everything is allowed, up to an allowed instant. */
  freeFrom(at: number): number {
    const range = rangeIndexAt(this.#open, at);
    const low = range < 0 ? at : (this.#open.lows[range] as number);
    const below = this.#highs[this.#regionAtOrAbove(at) + 1];
    return below === undefined ? low : Math.max(low, below + 1);
  }

  /** The index of the earliest region that does not end before `at`; -1 if all do. */
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

/** Bits in one word of the set. */
const wordBits = 32;

/**
 * A set of whole numbers below a limit that finds neighbours quickly: words of bits, above them
 * words that record which words below are not empty, and so on up to a single word. Every operation
 * touches one word per level, with four levels for a million members.
 */
export class RankSet {
  readonly #levels: readonly Int32Array[];

  constructor(limit: number) {
    const levels: Int32Array[] = [];
    let words = Math.max(1, limit);
    do {
      words = Math.ceil(words / wordBits);
      levels.push(new Int32Array(words));
    } while (words > 1);
    this.#levels = levels;
  }

  add(rank: number): void {
    let at = rank;
    for (const level of this.#levels) {
      const word = at >>> 5;
      level[word] = (level[word] as number) | (1 << (at & 31));
      at = word;
    }
  }

  delete(rank: number): void {
    let at = rank;
    for (const level of this.#levels) {
      const word = at >>> 5;
      const left = (level[word] as number) & ~(1 << (at & 31));
      level[word] = left;
      if (left !== 0) return;
      at = word;
    }
  }

  /** The smallest member at or above `rank`; -1 if there is none. */
  atOrAbove(rank: number): number {
    let at = rank;
    for (let height = 0; height < this.#levels.length; height += 1) {
      const word = at >>> 5;
      const bits = (this.#word(height, word) & (-1 << (at & 31))) >>> 0;
      if (bits !== 0) return this.#descend(height, word * wordBits + lowestBit(bits), lowestBit);
      at = word + 1;
    }
    return -1;
  }

  /** The largest member below `rank`; -1 if there is none. */
  below(rank: number): number {
    let at = rank - 1;
    for (let height = 0; height < this.#levels.length && at >= 0; height += 1) {
      const word = at >>> 5;
      const bits = (this.#word(height, word) & (-1 >>> (31 - (at & 31)))) >>> 0;
      if (bits !== 0) return this.#descend(height, word * wordBits + highestBit(bits), highestBit);
      at = word - 1;
    }
    return -1;
  }

  #word(height: number, word: number): number {
    return this.#levels[height]?.[word] ?? 0;
  }

  #descend(height: number, from: number, pick: (bits: number) => number): number {
    let at = from;
    for (let level = height - 1; level >= 0; level -= 1) {
      at = at * wordBits + pick(this.#word(level, at) >>> 0);
    }
    return at;
  }
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

function highestBit(bits: number): number {
  return 31 - Math.clz32(bits);
}
