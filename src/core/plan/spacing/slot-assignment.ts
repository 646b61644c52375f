import { assert } from "../../../errors.ts";
import { type OpenTime, withoutRanges } from "../../limits/gate.ts";
import { type DeadlineOrder, forbiddenRegions } from "./forbidden-region.ts";

/** When one node may start: from `release` to `deadline`, both included, in whole milliseconds. */
export interface StartRange {
  readonly release: number;
  readonly deadline: number;
}

/**
 * Many ranges, by release and then by deadline: the i-th job has `releases[i]` and `deadlines[i]`.
 * Plain arrays, because a search for the best gap passes over them about thirty times.
 */
export interface SortedRanges {
  readonly releases: Float64Array;
  readonly deadlines: Float64Array;
  /** The deadlines in their own order; undefined if that is the order of the releases. */
  readonly disorder: DeadlineOrder | undefined;
}

export interface SlotProblem {
  readonly ranges: SortedRanges;
  /** The instants that all jobs share; a fixed departure is a hole in them. */
  readonly open: OpenTime;
}

function inStartOrder(a: StartRange, b: StartRange): number {
  return a.release - b.release || a.deadline - b.deadline;
}

/** The ranges of the i-th release and deadline, sorted if they are not. */
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
 * The earliest starts that keep `gap` between any two and every job inside its range. Sorted; the
 * k-th start is no later than the k-th start of any other schedule, so their sum is minimal.
 * Undefined if the gap is impossible. The starts do not depend on which job takes which, so that is
 * left to `assignSlots`.
 *
 * A gap between starts is a job of that length on one machine. If release times and deadlines are
 * agreeable, taking the jobs in their order is optimal. Otherwise, starts that would shut out a
 * more urgent job are forbidden first, after M. R. Garey, D. S. Johnson, B. B. Simons and R. E.
 * Tarjan, "Scheduling unit-time tasks with arbitrary release times and deadlines", SIAM Journal on
 * Computing 10(2), 1981. The closed times of `open` are forbidden for all jobs alike, which is what
 * their proof requires of a forbidden region.
 */
export function earliestSlots(problem: SlotProblem, gap: number): Float64Array | undefined {
  const { releases, deadlines, disorder } = problem.ranges;
  if (disorder === undefined) return packed({ releases, deadlines, open: problem.open }, gap);
  // Without a gap, no job blocks another.
  if (gap <= 0) return packed({ releases, open: problem.open }, gap);
  const holes = forbiddenRegions({ releases, disorder, open: problem.open }, gap);
  // The forbidden regions account for the deadlines: any order of the jobs works.
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

/** A job that needs a slot. */
export interface Slotted extends StartRange {
  readonly zone: string;
  /** Its rank among all jobs: the older node first, then by name. */
  readonly rank: number;
}

/** Deadlines within this many milliseconds are ties: machines of one group, created together. */
const tieMs = 60_000;

/**
 * Assigns the sorted `slots` to jobs; returns the jobs in the order of the slots. Each slot goes to
 * the released job with the earliest deadline, which finds a complete assignment if one exists.
 * Deadlines within a minute of each other without a slot in between are ties. Of tied jobs, the
 * next one is from another zone than the previous one, namely the zone with most of them left, so
 * that zones alternate as long as possible; then the older node, then the name. The order of `jobs`
 * does not matter.
 */
export function assignSlots<Job extends Slotted>(
  slots: Float64Array,
  jobs: readonly Job[],
): readonly Job[] {
  const coming = [...jobs].sort((a, b) => inStartOrder(a, b) || a.rank - b.rank);
  const ties = tiesOf(jobs, slots);
  const waiting = new WaitingJobs<Job>(ties);
  const order: Job[] = [];
  let next = 0;
  let zone: string | undefined;
  for (const slot of slots) {
    for (let job = coming[next]; job !== undefined && job.release <= slot; job = coming[next]) {
      waiting.add(job);
      next += 1;
    }
    const job = waiting.take(zone);
    assert(job !== undefined && slot <= job.deadline, "every slot has a job that may take it");
    order.push(job);
    zone = job.zone;
  }
  return order;
}

/**
 * For each deadline, the first one that it ties with. The same slots lie before all of them, so it
 * does not matter to the others which one takes a slot.
 */
function tiesOf(jobs: readonly StartRange[], slots: Float64Array): ReadonlyMap<number, number> {
  const deadlines = Float64Array.from(jobs.map((job) => job.deadline)).sort();
  const ties = new Map<number, number>();
  let slot = 0;
  let first = Number.NEGATIVE_INFINITY;
  for (const deadline of deadlines) {
    const before = slot;
    while (slot < slots.length && (slots[slot] as number) <= deadline) slot += 1;
    if (slot > before || deadline - first >= tieMs) first = deadline;
    ties.set(deadline, first);
  }
  return ties;
}

/** Released jobs of one deadline and zone: sorted by rank, taken from `head` on. */
interface SlotQueue<Job> {
  readonly jobs: Job[];
  head: number;
}

type Zones<Job> = Map<string, SlotQueue<Job>>;

/** Released jobs by deadline, where ties count as one, and within a deadline by zone. */
class WaitingJobs<Job extends Slotted> {
  readonly #ties: ReadonlyMap<number, number>;
  /** Most deadlines have a single job, which is then stored directly. */
  readonly #groups = new Map<number, Job | Zones<Job>>();
  /** A binary heap of the deadlines in `#groups`. */
  readonly #heap: number[] = [];

  constructor(ties: ReadonlyMap<number, number>) {
    this.#ties = ties;
  }

  add(job: Job): void {
    const deadline = this.#ties.get(job.deadline) ?? job.deadline;
    const group = this.#groups.get(deadline);
    if (group === undefined) {
      this.#groups.set(deadline, job);
      pushHeap(this.#heap, deadline);
    } else if (group instanceof Map) enqueue(group, job);
    else {
      const zones: Zones<Job> = new Map();
      enqueue(zones, group);
      enqueue(zones, job);
      this.#groups.set(deadline, zones);
    }
  }

  take(lastZone: string | undefined): Job | undefined {
    const deadline = this.#heap[0];
    const group = deadline === undefined ? undefined : this.#groups.get(deadline);
    if (deadline === undefined || group === undefined) return undefined;
    const job = group instanceof Map ? dequeue(group, lastZone) : group;
    if (!(group instanceof Map) || group.size === 0) {
      this.#groups.delete(deadline);
      popHeap(this.#heap);
    }
    return job;
  }
}

function enqueue<Job extends Slotted>(zones: Zones<Job>, job: Job): void {
  const queue = zones.get(job.zone);
  if (queue === undefined) zones.set(job.zone, { jobs: [job], head: 0 });
  else insertByRank(queue, job);
}

function dequeue<Job extends Slotted>(
  zones: Zones<Job>,
  lastZone: string | undefined,
): Job | undefined {
  const queue = pickQueue(zones, lastZone);
  const job = queue?.jobs[queue.head];
  if (queue === undefined || job === undefined) return undefined;
  queue.head += 1;
  if (queue.head === queue.jobs.length) zones.delete(job.zone);
  return job;
}

/** Jobs mostly arrive in the order of their ranks, so this mostly appends. */
function insertByRank<Job extends Slotted>({ jobs, head }: SlotQueue<Job>, job: Job): void {
  let at = jobs.length;
  while (at > head && (jobs[at - 1] as Job).rank > job.rank) at -= 1;
  jobs.splice(at, 0, job);
}

function pickQueue<Job extends Slotted>(
  zones: Zones<Job>,
  lastZone: string | undefined,
): SlotQueue<Job> | undefined {
  let best: SlotQueue<Job> | undefined;
  for (const [zone, queue] of zones) {
    if (zone === lastZone && zones.size > 1) continue;
    if (best === undefined || goesBefore(queue, best)) best = queue;
  }
  return best;
}

function goesBefore<Job extends Slotted>(a: SlotQueue<Job>, b: SlotQueue<Job>): boolean {
  const difference = a.jobs.length - a.head - (b.jobs.length - b.head);
  if (difference !== 0) return difference > 0;
  return (a.jobs[a.head]?.rank ?? 0) < (b.jobs[b.head]?.rank ?? 0);
}

function pushHeap(heap: number[], value: number): void {
  let at = heap.length;
  heap.push(value);
  while (at > 0) {
    const parent = (at - 1) >>> 1;
    if ((heap[parent] as number) <= value) break;
    heap[at] = heap[parent] as number;
    at = parent;
  }
  heap[at] = value;
}

function popHeap(heap: number[]): void {
  const value = heap.pop();
  if (value === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) {
      child += 1;
    }
    if ((heap[child] as number) >= value) break;
    heap[at] = heap[child] as number;
    at = child;
  }
  heap[at] = value;
}

/** Jobs with the same range, and no others, change places so that their zones alternate. */
export function zonesInTurn<Job extends Slotted>(jobs: readonly Job[]): readonly Job[] {
  const turns: (Slotted & { readonly job: Job })[] = [];
  let before: Job | undefined;
  let deadline = 0;
  for (const job of jobs) {
    const equal = before?.deadline === job.deadline && before.release === job.release;
    if (!equal) deadline += tieMs;
    turns.push({ job, zone: job.zone, rank: job.rank, release: 0, deadline });
    before = job;
  }
  return assignSlots(new Float64Array(turns.length), turns).map(({ job }) => job);
}
