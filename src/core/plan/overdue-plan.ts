import { nextOpen, type OpenTime, openTime } from "../limits/gate.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import { hours, instant, plus } from "../time/time.ts";
import type { PlanCandidates, PlannedDeparture } from "./fleet-plan.ts";
import { type DueDeparture, waitsForBudget } from "./job-classes.ts";
import { departureOf, type Job, keptShare } from "./planned-departure.ts";
import { largest } from "./spacing/largest.ts";
import { zonesInTurn } from "./spacing/slot-assignment.ts";
import { smallestGapMs } from "./spacing/spacing.ts";
import { leastGapMs } from "./start-queue.ts";
import { TakenInstants } from "./taken-instants.ts";

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
 * least min(spacing.min, the reached gap) from every other departure, and further if they can.
 * Nodes that were planned before keep their instants up to the first one that is no longer such an
 * instant. That one and all after it are placed again, in the same order: none overtakes another.
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
  const gap = overdueGap(jobs.overdue, { around, others: [...walls, ...past] });
  // Departures that wait for a budget start first, and keep the gap from the newest start.
  const isQueue = [...jobs.due, ...jobs.overdueDue].some(waitsForBudget);
  const others = isQueue ? walls : [...walls, ...past];
  const { kept, moves } = queueOf(jobs.overdue, { around, others, gap });
  const search = { around, gap, others: [...walls, ...past, ...kept.map((one) => one.departAt)] };
  const fresh = [...moves, ...freshInTurn(jobs.overdue)];
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
  const planned = plannedBefore(jobs);
  const count = keptCount(planned, search);
  const keeps = planned.slice(0, count);
  const hours = hoursOf(keeps, search.around);
  return {
    kept: keeps.map(({ job, keptAt }) => placedAt(job, keptAt, hours)),
    moves: planned.slice(count).map(released),
  };
}

function released({ job, keptAt }: KeptDeparture): Job {
  return { ...job, release: Math.max(job.release, keptAt) };
}

interface KeptDeparture {
  readonly job: Job;
  readonly keptAt: number;
}

function plannedBefore(jobs: readonly Job[]): readonly KeptDeparture[] {
  return jobs
    .flatMap((job) => (job.keptAt === undefined ? [] : [{ job, keptAt: job.keptAt }]))
    .toSorted((a, b) => a.keptAt - b.keptAt || a.job.rank - b.job.rank);
}

function freshInTurn(jobs: readonly Job[]): readonly Job[] {
  return zonesInTurn(jobs.filter((job) => job.keptAt === undefined));
}

/** How many of the jobs can keep their instants before the first one that cannot. */
function keptCount(planned: readonly KeptDeparture[], { around, others, gap }: Search): number {
  const open = openTime(hoursOf(planned, around).spans);
  // The reached gap changes slightly with every change of the fleet.
  const least = gap === around.policy.spacing.minMs ? gap : Math.floor(gap * keptShare);
  const taken = new TakenInstants(least, others);
  const first = planned.findIndex(({ job, keptAt }) => {
    const isOpen = keptAt - around.at > neverOpensMs || nextOpen(open, keptAt) === keptAt;
    if (!isKept(job) || !isOpen || !taken.isClear(keptAt)) return true;
    taken.take(keptAt);
    return false;
  });
  return first < 0 ? planned.length : first;
}

/** The open hours until the last of the instants, except those years away. */
function hoursOf(planned: readonly KeptDeparture[], { policy, at }: AroundOverdue): OpenHours {
  const last = planned.findLast(({ keptAt }) => keptAt - at <= neverOpensMs)?.keptAt ?? at;
  return openHours(policy.windows, { startAt: at, endAt: instant(Math.max(at, last) + 1) });
}

/** Whether the job can keep its instant: a hold may have postponed it past the instant. */
function isKept({ keptAt, release }: Job): boolean {
  return keptAt !== undefined && keptAt >= release;
}

/**
 * The reached gap, or the widest one at which as many leave before their machines end: the others'
 * gap may be narrow for reasons of their own, such as a window that opens late. A single node may
 * come closer than that to the others, if it leaves before its end then; several would crowd.
 */
function overdueGap(
  jobs: readonly Job[],
  { around, others }: Pick<Search, "around" | "others">,
): number {
  const { at, policy } = around;
  const reached = reachedGap(around);
  const endsAt = jobs.reduce((last, { candidate }) => Math.max(last, candidate.endsAt), 0);
  const isAlone = jobs.length === 1;
  if (endsAt < at || (reached === policy.spacing.minMs && !isAlone)) return reached;
  const hours = openHours(policy.windows, { startAt: at, endAt: instant(endsAt + 1) });
  const open = openTime(hours.spans);
  const inOrder = [...plannedBefore(jobs).map(released), ...freshInTurn(jobs)];
  const inTimeAt = (gap: number): ReadonlySet<Job> => {
    const slots = instantsFor(inOrder, { others, gap, open });
    return new Set(inOrder.filter((job, place) => (slots[place] ?? 0) <= job.candidate.endsAt));
  };
  const least = isAlone ? Math.min(reached, leastGapMs(policy.spacing.minMs)) : reached;
  const kept = inTimeAt(reached).size > 0 ? reached : least;
  const inTime = inTimeAt(kept);
  if (inTime.size === 0) return reached;
  const canKeep = (gap: number): boolean => inTime.isSubsetOf(inTimeAt(gap));
  return largest({ kept, limit: policy.spacing.minMs }, canKeep);
}

/**
 * The reached gap is that of the other departures that are still ahead: two that are due did not
 * start at their instants. If two share an instant, it is 0, which would let every overdue node
 * leave at once; then only the wanted gap counts.
 */
function reachedGap({ at, policy, placed }: AroundOverdue): number {
  const ahead = placed.filter(({ departAt }) => departAt >= at);
  const reached = smallestGapMs(ahead.map((one) => one.departAt)) ?? 0;
  return reached > 0 ? Math.min(policy.spacing.minMs, reached) : policy.spacing.minMs;
}

interface Search {
  readonly around: AroundOverdue;
  readonly others: readonly number[];
  readonly gap: number;
}

/** The earliest instants in the given order; Infinity where the open time has no room. */
function instantsFor(
  jobs: readonly Job[],
  { others, gap, open }: Omit<Search, "around"> & { readonly open: OpenTime },
): readonly number[] {
  const taken = new TakenInstants(gap, others);
  return jobs.map(({ release }) => taken.takeFirst(open, release));
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
    const instants = instantsFor(jobs, { others, gap, open: openTime(open.spans) });
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
  const instants = instantsFor(jobs, { others: all, gap, open });
  const bounds = { startAt: around.at, endAt: plus(around.at, firstLookMs) };
  const shut = { bounds, spans: [], allow: [], deny: [] };
  return jobs.map((job, at) => placedAt(job, instants[at] as number, shut));
}

function placedAt(job: Job, at: number, hours: OpenHours): PlannedDeparture {
  return departureOf(job, { at, reason: "Overdue", hours });
}
