import { assert } from "../../errors.ts";
import { nextOpen, previousOpen } from "../limits/open-time.ts";
import { type OpenHours, windowNameAt } from "../limits/windows.ts";
import { spanIndexAt } from "../time/span.ts";
import { earlier, type Instant, instant, later, minus, minutes, seconds } from "../time/time.ts";
import type { Candidate, PlanCandidates } from "./candidate.ts";
import type { PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
import { assignSlots, type Slotted } from "./spacing/slot-assignment.ts";
import {
  clearFrom,
  earlyInstants,
  freeGapMs,
  lateInstants,
  type Spacing,
  type SpacingProblem,
  spacingOf,
} from "./spacing/spacing.ts";

/** A job that may have had a slot in the plan before. */
interface KeepableJob extends Slotted {
  readonly keptAt?: number | undefined;
}

export interface SlotDemand<Job extends KeepableJob> {
  readonly jobs: readonly Job[];
  /** The same jobs, and where they may leave. */
  readonly spacing: Spacing;
  readonly mode: "Late" | "Even";
  /** The gap that the plan is to reach. */
  readonly goal: number;
  /** Whether the gap is the widest that there is room for, and not the gap that was asked for. */
  readonly goalIsBest: boolean;
}

export interface PlacedJob<Job> {
  readonly job: Job;
  readonly at: number;
}

/**
 * Where the best gap is the goal, it is a little different each time the fleet changes: a plan that
 * is short of it by a hundredth is not worth moving everybody.
 */
export const keptShare = 0.99;

/** How many times more jobs move at each further attempt. */
const freedFactor = 4;

/**
 * Gives every job its instant. Those of the plan before stay where they are as long as the goal can
 * be reached with them; where it cannot, the ones nearest to the jobs that need room move first,
 * then four times as many, until it can. With nothing to keep this is the plan of a first day.
 */
export function placeJobs<Job extends KeepableJob>(
  demand: SlotDemand<Job>,
): readonly PlacedJob<Job>[] {
  const { goal, goalIsBest } = demand;
  const keepGap = goalIsBest ? Math.floor(goal * keptShare) : goal;
  let kept = keepable(demand, keepGap);
  for (let freed = 1; kept.length > 0; freed *= freedFactor) {
    const placed = seatAround(demand, { kept, gap: keepGap });
    if (placed !== undefined) return placed;
    kept = withoutNearest(demand, { kept, count: freed });
  }
  const around = { kept, gap: demand.goal };
  // A node whose deadline left no room after the newest start at the best gap may have some at this
  // smaller one, but not enough beside its neighbours; then the former plan is dropped.
  const placed = seatAround(demand, around) ?? seatAround(withoutPast(demand), around);
  assert(placed !== undefined, "the gap of a plan is one that a plan can have");
  return placed;
}

function withoutPast<Job extends KeepableJob>(demand: SlotDemand<Job>): SlotDemand<Job> {
  return { ...demand, spacing: spacingOf({ ...demand.spacing.problem, lastStart: undefined }) };
}

interface Around<Job> {
  readonly kept: readonly Job[];
  readonly gap: number;
}

/** Instants for the jobs that are not kept, a gap from each other and from all that is settled. */
function seatAround<Job extends KeepableJob>(
  demand: SlotDemand<Job>,
  { kept, gap }: Around<Job>,
): readonly PlacedJob<Job>[] | undefined {
  const jobs = without(demand.jobs, kept);
  const placed = kept.map((job) => ({ job, at: job.keptAt ?? job.deadline }));
  if (jobs.length === 0) return placed;
  const slots = slotsOf(spacingAround(demand.spacing, jobs, placed), demand.mode, gap);
  if (slots === undefined) return undefined;
  const order = assignSlots(slots, jobs);
  return [...placed, ...order.map((job, at) => ({ job, at: slots[at] as number }))];
}

function spacingAround(
  spacing: Spacing,
  jobs: readonly KeepableJob[],
  placed: readonly PlacedJob<KeepableJob>[],
): Spacing {
  if (placed.length === 0) return spacing;
  const fixed = [...spacing.problem.fixed, ...placed.map(({ at }) => at)];
  return spacingOf({ ...spacing.problem, jobs, fixed });
}

function slotsOf(spacing: Spacing, mode: "Late" | "Even", gap: number): Float64Array | undefined {
  if (mode === "Late") return lateInstants(spacing, gap);
  return earlyInstants(spacing, gap) === undefined ? undefined : evenInstants(spacing, gap);
}

/**
 * Jobs whose old instant is still allowed and a gap away from what is fixed and from each other.
 */
function keepable<Job extends KeepableJob>(
  { jobs, spacing }: SlotDemand<Job>,
  gap: number,
): readonly Job[] {
  const { open, lastStart } = spacing.problem;
  const { walls } = spacing;
  const allowed = jobs.filter(
    ({ keptAt, release, deadline }) =>
      keptAt !== undefined &&
      keptAt >= Math.max(release, clearFrom(lastStart, previousOpen(open, deadline), gap)) &&
      keptAt <= deadline &&
      nextOpen(open, keptAt) === keptAt,
  );
  const sorted = [...allowed].sort((a, b) => (a.keptAt ?? 0) - (b.keptAt ?? 0) || a.rank - b.rank);
  const kept: Job[] = [];
  let wall = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (const job of sorted) {
    const at = job.keptAt ?? 0;
    while ((walls[wall] ?? Number.POSITIVE_INFINITY) <= at - gap) wall += 1;
    const nearWall = (walls[wall] ?? Number.POSITIVE_INFINITY) < at + gap;
    if (nearWall || at - last < gap) continue;
    kept.push(job);
    last = at;
  }
  return kept;
}

/**
 * The kept jobs without the `count` that stand nearest to the deadline of a job that needs room.
 */
function withoutNearest<Job extends KeepableJob>(
  demand: SlotDemand<Job>,
  { kept, count }: { readonly kept: readonly Job[]; readonly count: number },
): readonly Job[] {
  const wanted = Float64Array.from(without(demand.jobs, kept), (job) => job.deadline).sort();
  const distance = new Map(kept.map((job) => [job, nearest(wanted, job.keptAt ?? 0)]));
  const byDistance = [...kept].sort(
    (a, b) => (distance.get(b) ?? 0) - (distance.get(a) ?? 0) || a.rank - b.rank,
  );
  return byDistance.slice(0, Math.max(0, kept.length - count));
}

function without<Job>(jobs: readonly Job[], kept: readonly Job[]): readonly Job[] {
  if (kept.length === 0) return jobs;
  if (kept.length === jobs.length) return [];
  const stay = new Set(kept);
  return jobs.filter((job) => !stay.has(job));
}

function nearest(sorted: Float64Array, at: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  const above = sorted[low] ?? Number.POSITIVE_INFINITY;
  const below = sorted[low - 1] ?? Number.NEGATIVE_INFINITY;
  return Math.min(above - at, at - below);
}

/**
 * Rounds of widening at most: each costs a search, and beyond a dozen bottlenecks nobody sees the
 * difference. Larger fleets get fewer, so that a plan stays a matter of milliseconds.
 */
const roundsAtMost = 12;
const jobsInAllRounds = 40_000;

/**
 * Instants as wide apart as possible: first the departures that hold the smallest gap down get
 * theirs, then the rest is spread as widely as these leave room, and so on. Without this a fleet
 * with one crowded hour would leave crowded all day. Sorted; keeps the best gap of `bestGapMs`
 * between all departures that have a choice. `kept` is a gap that can be kept.
 */
export function evenInstants(spacing: Spacing, kept: number): Float64Array {
  let left = spacing;
  let gap = kept;
  const settled: number[] = [];
  const rounds = Math.min(roundsAtMost, Math.ceil(jobsInAllRounds / left.problem.jobs.length));
  for (let round = 1; ; round += 1) {
    gap = freeGapMs(left, gap);
    const early = earlyInstants(left, gap) ?? new Float64Array();
    const late = lateInstants(left, gap) ?? early;
    const tight = round < rounds ? tightSlots(early, late) : new Set<number>();
    const done = tight.size === 0 || tight.size === early.length;
    // Among plans of one gap the latest is the best: a node that leaves early has lived for less.
    for (const slot of done ? late : early) if (done || tight.has(slot)) settled.push(slot);
    if (done) return Float64Array.from(settled).sort();
    left = spacingOf(withoutSlots(left.problem, { early, tight }));
  }
}

/**
 * Starts that could not move without narrowing the gap. The gap is cut to whole milliseconds, which
 * leaves up to one millisecond of play for each job.
 */
function tightSlots(early: Float64Array, late: Float64Array): ReadonlySet<number> {
  const play = early.length;
  return new Set(early.filter((slot, at) => (late[at] as number) - slot <= play));
}

interface Settling {
  readonly early: Float64Array;
  readonly tight: ReadonlySet<number>;
}

/** The problem that is left when the jobs at the tight slots have theirs. */
function withoutSlots(problem: SpacingProblem, { early, tight }: Settling): SpacingProblem {
  const jobs: readonly Slotted[] = problem.jobs.map((job, at) => ({
    ...job,
    zone: "",
    rank: at,
  }));
  const order = assignSlots(early, jobs);
  return {
    ...problem,
    jobs: order.filter((_, at) => !tight.has(early[at] as number)),
    fixed: [...problem.fixed, ...tight],
  };
}

/** A candidate as the optimiser sees it. */
export interface Job extends KeepableJob {
  readonly candidate: Candidate;
}

interface Place {
  readonly at: number;
  readonly reason: PlannedReason;
  readonly hours: OpenHours;
  readonly isLate?: boolean;
}

/** What becomes of a candidate that has its instant. */
export function departureOf({ candidate }: Job, place: Place): PlannedDeparture {
  const { at, reason, hours, isLate = false } = place;
  const { node, zone, bornAt, bornFrom, earliestAt, deadlineAt, endsAt, keptAt } = candidate;
  const departAt = instant(at);
  return {
    node,
    zone,
    bornAt,
    bornFrom,
    earliestAt,
    deadlineAt,
    endsAt,
    departAt,
    beginAt:
      reason === "DeadlineBeatsWindow" ? departAt : beginAtOf(departAt, { earliestAt, hours }),
    window: reason === "DeadlineBeatsWindow" ? null : windowNameAt(hours, departAt),
    reason,
    isLate,
    movedFrom: keptAt === undefined || keptAt === departAt ? undefined : keptAt,
  };
}

/**
 * From the decision to the record in the cluster it takes a moment; the window is to be open then.
 */
const beforeShutMs = seconds(5);

/**
 * `Late` lays a departure on the very last millisecond of a window, at which nobody can act: it
 * begins some seconds before. The end of what is looked at is no end of a window.
 */
function beginAtOf(
  departAt: Instant,
  { earliestAt, hours }: { readonly earliestAt: Instant; readonly hours: OpenHours },
): Instant {
  const span = hours.spans[spanIndexAt(hours.spans, departAt)];
  if (span === undefined || span.endAt >= hours.bounds.endAt || span.endAt <= departAt) {
    return departAt;
  }
  const safeAt = later(later(minus(span.endAt, beforeShutMs), span.startAt), earliestAt);
  return earlier(departAt, safeAt);
}

export function byTime(a: PlannedDeparture, b: PlannedDeparture): number {
  if (a.departAt !== b.departAt) return a.departAt - b.departAt;
  return a.node.name < b.node.name ? -1 : 1;
}

/** How the newest start of a policy counts for those that come after it. */
export interface Pace {
  /** A start that is late by less is on time, as far as its neighbours are concerned. */
  readonly lagMs: number;
  /**
   * When a node was last made to leave; undefined where none was. A start that was on time counts
   * as its planned instant: else each start would push all later ones on by its own lag.
   */
  readonly leftAt: number | undefined;
  readonly isOnTime: boolean;
  /** The newest start, where it was late. */
  readonly late: LateStart | undefined;
}

/** A start after its time. Others that were planned far from it may stand too near to it now. */
export interface LateStart {
  readonly at: number;
  readonly plannedAt: number;
}

/**
 * Of the distance between the departures around now this share is a moment, within these bounds.
 */
const lagShare = 15;
const leastLagMs = seconds(1);
const mostLagMs = minutes(1);

export function paceOf(
  jobs: readonly Job[],
  input: Pick<PlanCandidates, "at" | "newestStart">,
): Pace {
  const { newestStart } = input;
  const plannedAt = newestStart?.plannedAt;
  const lagMs = lagOf(stepAround(jobs, { at: input.at, plannedAt }));
  if (newestStart === undefined) {
    return { lagMs, leftAt: undefined, isOnTime: true, late: undefined };
  }
  const { at } = newestStart;
  if (plannedAt !== undefined && at >= plannedAt && at - plannedAt < lagMs) {
    return { lagMs, leftAt: plannedAt, isOnTime: true, late: undefined };
  }
  const isLate = plannedAt !== undefined && plannedAt < at;
  return { lagMs, leftAt: at, isOnTime: false, late: isLate ? { at, plannedAt } : undefined };
}

function lagOf(stepMs: number): number {
  return Math.min(mostLagMs, Math.max(leastLagMs, stepMs / lagShare));
}

/**
 * The smallest distance between the newest start, those that are due and the next one, as planned.
 */
function stepAround(
  jobs: readonly Job[],
  { at, plannedAt }: { readonly at: number; readonly plannedAt: number | undefined },
): number {
  const stops = plannedAt === undefined ? [] : [plannedAt];
  let next = Number.POSITIVE_INFINITY;
  for (const { keptAt } of jobs) {
    if (keptAt === undefined) continue;
    if (keptAt > at) next = Math.min(next, keptAt);
    else stops.push(keptAt);
  }
  const sorted = Float64Array.from([...stops, next]).sort();
  let step = Number.POSITIVE_INFINITY;
  for (let place = 1; place < sorted.length; place += 1) {
    const distance = (sorted[place] as number) - (sorted[place - 1] as number);
    if (distance > 0) step = Math.min(step, distance);
  }
  return step;
}
