import { assert } from "../../errors.ts";
import { keptAway, nextOpen, type OpenTime, openTime } from "../limits/gate.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import { hours, type Instant, instant, later, plus } from "../time/time.ts";
import type { PlanCandidates, PlannedDeparture } from "./fleet-plan.ts";
import { type DueDeparture, hasAllowedInstant, waitsForBudget } from "./job-classes.ts";
import { departureOf, type Job, keptShare } from "./planned-departure.ts";
import { assignSlots, type Slotted, tieMs } from "./spacing/slot-assignment.ts";
import { smallestGapMs } from "./spacing/spacing.ts";

/** A node that should have left already. */
export interface OverdueJob {
  /** The earliest instant at which it may leave. */
  readonly release: number;
}

export interface OverdueProblem {
  readonly open: OpenTime;
  /** The instants of all departures placed so far. */
  readonly others: readonly number[];
  /** The gap that an overdue departure keeps from every other one. */
  readonly gap: number;
}

/**
 * The earliest allowed instants for overdue nodes in the given order (oldest first), each at least
 * the gap from every other departure. Infinity if the open times given here have no room for a
 * node; later nodes with the same release then get Infinity too.
 */
function overdueInstants(jobs: readonly OverdueJob[], problem: OverdueProblem): Float64Array {
  const { gap } = problem;
  const others = [...problem.others].sort((a, b) => a - b);
  const open = keptAway(problem.open, others, gap);
  const taken: number[] = [];
  const instants = new Float64Array(jobs.length);
  // Instants with no room for one job have none for the next one with the same release.
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

/** The first open instant from `from` on that is at least the gap from every taken one. */
function firstFit({ open, taken, gap }: Capacity, from: number): number {
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
function placeIn(taken: readonly number[], at: number): number {
  let low = 0;
  let high = taken.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((taken[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface AroundOverdue extends PlanCandidates {
  readonly hours: OpenHours;
  /** Every other departure of the policy, except those in `apart`. */
  readonly placed: readonly PlannedDeparture[];
  /** Departures that missed their time. The reached gap ignores the gaps between them. */
  readonly apart: readonly PlannedDeparture[];
  readonly lastStart: number | undefined;
}

/** How far ahead an open window is searched for overdue nodes; each further search doubles it. */
const firstLookMs = hours(24);

/** Windows that stay shut for this long count as never open: overdue nodes leave regardless. */
const neverOpensMs = hours(400 * 24);

export interface OverdueJobs {
  /** Oldest first. */
  readonly overdue: readonly Job[];
  /** Due, and waiting to start. */
  readonly overdueDue: readonly DueDeparture[];
  /** Likewise, but not overdue when first planned. */
  readonly due: readonly DueDeparture[];
}

/**
 * Overdue nodes never leave all at once. Oldest first, they take the earliest allowed instants at
 * least min(spacing.min, the reached gap) from every other departure. Nodes that were planned
 * before keep their instants up to the first one that is no longer such an instant. That one and
 * all after it are placed again, in the same order: no node overtakes another.
 */
export function placeOverdue(
  jobs: OverdueJobs,
  around: AroundOverdue,
): readonly PlannedDeparture[] {
  const { hours, lastStart, placed, apart, requested } = around;
  const due = jobs.overdueDue.map(({ job, ...place }) => departureOf(job, { ...place, hours }));
  if (jobs.overdue.length === 0) return due;
  const walls = [...placed, ...apart, ...due].map((one) => one.departAt).concat(requested);
  const past = lastStart === undefined ? [] : [lastStart];
  const gap = overdueGap(around);
  // Departures that wait for a budget start first, and keep the gap from the newest start.
  const isQueue = [...jobs.due, ...jobs.overdueDue].some(waitsForBudget);
  const others = isQueue ? walls : [...walls, ...past];
  const { kept, moves } = queueOf(jobs.overdue, { around, others, gap });
  const search = { around, gap, others: [...walls, ...past, ...kept.map((one) => one.departAt)] };
  const fresh = [...moves, ...zonesInTurn(jobs.overdue.filter((job) => job.keptAt === undefined))];
  // For a node on hold for years, no window is searched until the end of the hold is near.
  const isFar = ({ release }: Job) => release - around.at > neverOpensMs;
  const near = fresh.filter((job) => !isFar(job));
  const inWindows = lookAhead(near, search);
  const left = [...near.slice(inWindows.length), ...fresh.filter(isFar)];
  return [...due, ...kept, ...inWindows, ...pastWindows(left, { ...search, inWindows })];
}

interface OverdueQueue {
  readonly kept: readonly PlannedDeparture[];
  /** Released at their current instants, so that none of them overtakes another. */
  readonly moves: readonly Job[];
}

/**
 * The jobs that have an instant, in that order: in it their zones alternate, also with the nodes
 * that have already left.
 */
function queueOf(jobs: readonly Job[], search: Search): OverdueQueue {
  const planned = jobs
    .flatMap((job) => (job.keptAt === undefined ? [] : [{ job, keptAt: job.keptAt }]))
    .toSorted((a, b) => a.keptAt - b.keptAt || a.job.rank - b.job.rank);
  const count = keptCount(planned, search);
  const keeps = planned.slice(0, count);
  const hours = hoursOf(keeps, search.around);
  return {
    kept: keeps.map(({ job, keptAt }) => placedAt(job, keptAt, hours)),
    moves: planned
      .slice(count)
      .map(({ job, keptAt }) => ({ ...job, release: Math.max(job.release, keptAt) })),
  };
}

interface KeptDeparture {
  readonly job: Job;
  readonly keptAt: number;
}

/** How many of the jobs can keep their instants before the first one that cannot. */
function keptCount(planned: readonly KeptDeparture[], { around, others, gap }: Search): number {
  const open = openTime(hoursOf(planned, around).spans);
  const taken = [...others].sort((a, b) => a - b);
  // The reached gap changes slightly with every change of the fleet.
  const least = gap === around.policy.spacing.minMs ? gap : Math.floor(gap * keptShare);
  const first = planned.findIndex(({ job, keptAt }, place) => {
    const isOpen = keptAt - around.at > neverOpensMs || nextOpen(open, keptAt) === keptAt;
    const former = planned[place - 1]?.keptAt ?? Number.NEGATIVE_INFINITY;
    const isApart = keptAt - former >= least && isClear(keptAt, { taken, gap: least });
    return !(isKept(job) && isOpen && isApart);
  });
  return first < 0 ? planned.length : first;
}

/** The open hours until the last of the instants, except those years away. */
function hoursOf(planned: readonly KeptDeparture[], { policy, at }: AroundOverdue): OpenHours {
  const last = planned.findLast(({ keptAt }) => keptAt - at <= neverOpensMs)?.keptAt ?? at;
  return openHours(policy.windows, { startAt: at, endAt: instant(Math.max(at, last) + 1) });
}

/** Whether the instant is at least the gap from every taken one. */
function isClear(at: number, { taken, gap }: Omit<Capacity, "open">): boolean {
  const place = placeIn(taken, at);
  const before = taken[place - 1] ?? Number.NEGATIVE_INFINITY;
  const after = taken[place] ?? Number.POSITIVE_INFINITY;
  return at - before >= gap && after - at >= gap;
}

/** Jobs of the same launch time, and no others, change places so that their zones alternate. */
function zonesInTurn(jobs: readonly Job[]): readonly Job[] {
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

/** Whether the job can keep its instant: a hold may have postponed it past the instant. */
function isKept({ keptAt, release }: Job): boolean {
  return keptAt !== undefined && keptAt >= release;
}

/**
 * The reached gap is that of the other departures that are still ahead: two that are due did not
 * start at their instants. If two share an instant, it is 0, which would let every overdue node
 * leave at once; then only the wanted gap counts.
 */
function overdueGap({ at, policy, placed }: AroundOverdue): number {
  const ahead = placed.filter(({ departAt }) => departAt >= at);
  const reached = smallestGapMs(ahead.map((one) => one.departAt)) ?? 0;
  return reached > 0 ? Math.min(policy.spacing.minMs, reached) : policy.spacing.minMs;
}

interface Search {
  readonly around: AroundOverdue;
  readonly others: readonly number[];
  readonly gap: number;
}

/** Doubles the searched period until every node has an instant or nothing opens any more. */
function lookAhead(
  jobs: readonly Job[],
  { around, others, gap }: Search,
): readonly PlannedDeparture[] {
  const { policy, at } = around;
  const releases = jobs.map((job) => job.release);
  const from = releases.reduce((a, b) => Math.max(a, b), at as number) - at;
  let aheadMs = Math.max(firstLookMs, from + jobs.length * gap);
  for (;;) {
    const open = openHours(policy.windows, { startAt: at, endAt: instant(at + aheadMs) });
    const instants = overdueInstants(jobs, { others, gap, open: openTime(open.spans) });
    const found = instants.indexOf(Number.POSITIVE_INFINITY);
    const shut = aheadMs >= neverOpensMs && !opensLate(open);
    if (found < 0 || shut) {
      const placed = jobs.map((job, place) => placedAt(job, instants[place] as number, open));
      return found < 0 ? placed : placed.slice(0, found);
    }
    aheadMs *= 2;
  }
}

/** Whether anything is open in the second half of the searched period. */
function opensLate({ bounds, spans }: OpenHours): boolean {
  const middle = (bounds.startAt + bounds.endAt) / 2;
  return (spans.at(-1)?.endAt ?? 0) > middle;
}

/** Places nodes whose windows never open: still one by one. */
function pastWindows(
  jobs: readonly Job[],
  { around, others, gap, inWindows }: Search & { readonly inWindows: readonly PlannedDeparture[] },
): readonly PlannedDeparture[] {
  const open = { lows: [around.at], highs: [Number.MAX_SAFE_INTEGER] };
  const all = [...others, ...inWindows.map((one) => one.departAt)];
  const instants = overdueInstants(jobs, { others: all, gap, open });
  const bounds = { startAt: around.at, endAt: plus(around.at, firstLookMs) };
  const shut = { bounds, spans: [], allow: [], deny: [] };
  return jobs.map((job, at) => placedAt(job, instants[at] as number, shut));
}

function placedAt(job: Job, at: number, hours: OpenHours): PlannedDeparture {
  return departureOf(job, { at, reason: "Overdue", hours });
}

export interface AroundMissed {
  readonly at: Instant;
  readonly policy: Policy;
  /** Every other instant that counts: of departures that are planned, requested or started. */
  readonly others: readonly number[];
}

export interface MissedPlan {
  readonly departures: readonly PlannedDeparture[];
  /** The gap that they keep from each other and from all others; at most `spacing.min`. */
  readonly gapMs: number;
}

/**
 * Instants for departures that have missed theirs and cannot all be planned in time: the earliest
 * ones at `spacing.min` from every other departure, within the reserve too. If their lifetimes
 * leave too little time, the gap is as wide as fits. An instant from an earlier such plan that is
 * still ahead is kept. A departure without an open window before its deadline leaves at any hour
 * after it.
 */
export function placeMissed(jobs: readonly Job[], around: AroundMissed): MissedPlan {
  const { at, policy, others } = around;
  const { minMs } = policy.spacing;
  const endAt = jobs.reduce((last, { candidate }) => later(last, candidate.endsAt), at);
  const hours = openHours(policy.windows, { startAt: at, endAt: instant(endAt + 1) });
  const scene = { at, hours, others, order: zonesInTurn(jobs) };
  const gapMs = widestGap(scene, minMs);
  const keepGap = gapMs === minMs ? gapMs : Math.floor(gapMs * keptShare);
  const slots = keptSlots(scene, keepGap) ?? slotsFor(scene, gapMs);
  assert(slots !== undefined, "with no gap at all each has room before its lifetime ends");
  const open = openTime(hours.spans);
  const departures = [...slots].map(([job, slot]) => {
    const inTime = slot <= job.deadline && nextOpen(open, slot) === slot;
    return departureOf(job, { at: slot, reason: inTime ? "Spaced" : "Missed", hours });
  });
  return { departures, gapMs };
}

interface OverdueScene {
  readonly at: number;
  readonly hours: OpenHours;
  readonly others: readonly number[];
  readonly order: readonly Job[];
}

type Slots = ReadonlyMap<Job, number>;

function widestGap(scene: OverdueScene, wanted: number): number {
  if (slotsFor(scene, wanted) !== undefined) return wanted;
  let kept = 0;
  let lost = wanted;
  while (lost - kept > 1) {
    const gap = Math.floor((kept + lost) / 2);
    if (slotsFor(scene, gap) === undefined) lost = gap;
    else kept = gap;
  }
  return kept;
}

/** The earliest instants in the given order; undefined if one is past the end of a lifetime. */
function slotsFor({ at, hours, others, order }: OverdueScene, gap: number): Slots | undefined {
  const walls = [...others].sort((a, b) => a - b);
  const open = openTime(hours.spans);
  const inWindows = new CapacitySearch(keptAway(open, walls, gap), gap);
  const anyHour = { lows: [at], highs: [Number.MAX_SAFE_INTEGER] };
  const atAnyHour = new CapacitySearch(keptAway(anyHour, walls, gap), gap);
  const taken: number[] = [];
  const slots = new Map<Job, number>();
  for (const job of order) {
    const slot = hasAllowedInstant(job, open)
      ? inWindows.from(job.release, taken)
      : atAnyHour.from(Math.max(at, job.deadline), taken);
    if (slot > job.candidate.endsAt) return undefined;
    taken.splice(placeIn(taken, slot), 0, slot);
    slots.set(job, slot);
  }
  return slots;
}

/** Instants with no room for one departure have none for the next one with the same release. */
class CapacitySearch {
  readonly #open: OpenTime;
  readonly #gap: number;
  readonly #searchedTo = new Map<number, number>();

  constructor(open: OpenTime, gap: number) {
    this.#open = open;
    this.#gap = gap;
  }

  from(release: number, taken: readonly number[]): number {
    const start = this.#searchedTo.get(release) ?? release;
    const found = firstFit({ open: this.#open, taken, gap: this.#gap }, start);
    this.#searchedTo.set(release, found);
    return found;
  }
}

/**
 * Departures that can keep their instants do, and the others are placed around them. Undefined if
 * there is no room, or if none can keep its instant.
 */
function keptSlots(scene: OverdueScene, gap: number): Slots | undefined {
  const kept = new Map(keepable(scene, gap).map((job) => [job, job.keptAt ?? 0]));
  if (kept.size === 0) return undefined;
  const others = [...scene.others, ...kept.values()];
  const order = scene.order.filter((job) => !kept.has(job));
  const fresh = slotsFor({ ...scene, others, order }, gap);
  return fresh && new Map([...kept, ...fresh]);
}

/** The jobs whose instants are still ahead, allowed, and at least the gap from all others. */
function keepable({ at, hours, others, order }: OverdueScene, gap: number): readonly Job[] {
  const open = openTime(hours.spans);
  const allowed = order.filter((job) => {
    const { keptAt = at, release, deadline, candidate } = job;
    if (keptAt <= at || keptAt > candidate.endsAt) return false;
    if (!hasAllowedInstant(job, open)) return keptAt >= deadline;
    return keptAt >= release && nextOpen(open, keptAt) === keptAt;
  });
  const taken = [...others].sort((a, b) => a - b);
  return allowed.filter(({ keptAt = at }) => {
    if (!isClear(keptAt, { taken, gap })) return false;
    taken.splice(placeIn(taken, keptAt), 0, keptAt);
    return true;
  });
}
