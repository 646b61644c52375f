import { assert } from "../../errors.ts";
import { holdOf } from "../cluster/node.ts";
import { nextOpen, previousOpen } from "../limits/gate.ts";
import { type OpenHours, windowNameAt } from "../limits/windows.ts";
import {
  earlier,
  type Instant,
  instant,
  later,
  minus,
  seconds,
  spanIndexAt,
} from "../time/time.ts";
import type { Barrier, Candidate, PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
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

/** A job that may have had an instant in the previous plan. */
interface KeepableJob extends Slotted {
  readonly keptAt?: number | undefined;
}

export interface SlotDemand<Job extends KeepableJob> {
  readonly jobs: readonly Job[];
  /** The same jobs, with the instants at which they may leave. */
  readonly spacing: Spacing;
  readonly mode: "Late" | "Even";
  /** The gap that the plan has to reach. */
  readonly goal: number;
  /** Whether the goal is the widest gap possible, and not the configured one. */
  readonly goalIsBest: boolean;
}

export interface PlacedJob<Job> {
  readonly job: Job;
  readonly at: number;
}

/**
 * If the best gap is the goal, it changes slightly with every change of the fleet. Kept instants
 * only have to reach this share of it: the last hundredth is not worth moving every departure.
 */
export const keptShare = 0.99;

/** Each further attempt frees this many times more jobs. */
const freedFactor = 4;

/**
 * Gives every job its instant. Jobs keep the instants of the previous plan as long as the goal can
 * be reached with them. If it cannot, the ones nearest to the jobs that need room move first, then
 * four times as many, until it can. With nothing to keep, this is an initial plan.
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
  // smaller one, but not beside its neighbours. In that case the newest start is ignored.
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

/**
 * Instants for the jobs that are not kept, at least the gap from each other and from all fixed
 * ones; undefined if there is no room.
 */
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
 * Jobs whose previous instants are still allowed, and at least the gap from the fixed ones and from
 * each other.
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

/** The kept jobs without the `count` nearest to the deadline of a job that needs room. */
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
 * The most rounds of widening. Each costs a search, and beyond a dozen bottlenecks the difference
 * is not noticeable. Larger fleets get fewer, so that planning takes only milliseconds.
 */
const roundsAtMost = 12;
const jobsInAllRounds = 40_000;

/**
 * Instants as far apart as possible: the departures that limit the smallest gap are placed first,
 * then the rest is spread as widely as these allow, and so on. Otherwise, a fleet with one crowded
 * hour would leave crowded all day. Sorted; keeps the best gap (`bestGapMs`) between all departures
 * that can move. `kept` is a gap known to be possible.
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
    // Of plans with the same gap, the latest is best: a node that leaves early has lived less.
    for (const slot of done ? late : early) if (done || tight.has(slot)) settled.push(slot);
    if (done) return Float64Array.from(settled).sort();
    left = spacingOf(withoutSlots(left.problem, { early, tight }));
  }
}

/**
 * Starts that cannot move without narrowing the gap. The gap is in whole milliseconds, which leaves
 * up to one millisecond of slack per job.
 */
function tightSlots(early: Float64Array, late: Float64Array): ReadonlySet<number> {
  const play = early.length;
  return new Set(early.filter((slot, at) => (late[at] as number) - slot <= play));
}

interface Settling {
  readonly early: Float64Array;
  readonly tight: ReadonlySet<number>;
}

/** The remaining problem after the jobs at the tight slots are placed. */
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

interface PlannedPlace {
  readonly at: number;
  readonly reason: PlannedReason;
  readonly hours: OpenHours;
  readonly isLate?: boolean;
}

/** The planned departure of a candidate at its instant. */
export function departureOf({ candidate }: Job, place: PlannedPlace): PlannedDeparture {
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
    overridesBudgetAt: endsAt,
    departAt,
    beginAt:
      reason === "DeadlineBeatsWindow" ? departAt : beginAtOf(departAt, { earliestAt, hours }),
    window: reason === "DeadlineBeatsWindow" ? null : windowNameAt(hours, departAt),
    reason,
    isLate,
    movedFrom: keptAt === undefined || keptAt === departAt ? undefined : keptAt,
    barrier: reason === "DeadlineBeatsWindow" ? barrierOf(candidate) : undefined,
  };
}

function barrierOf({ node, rest, deadlineAt }: Candidate): Barrier | undefined {
  const hold = holdOf(node);
  if (hold.kind === "Until" && hold.until > deadlineAt) return { by: "Hold", untilAt: hold.until };
  if (rest === undefined || rest.leastUntil <= deadlineAt) return undefined;
  return { by: "Rest", untilAt: rest.leastUntil };
}

/**
 * It takes a moment from the decision to the record in the cluster, when the window must be open.
 */
const beforeShutMs = seconds(5);

/**
 * `Late` may place a departure on the very last millisecond of a window, too late to act: it starts
 * some seconds earlier. The end of the computed hours is not the end of a window.
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
