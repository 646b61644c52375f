import { keptAway, type OpenTime, openTime, previousOpen } from "../limits/gate.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import { type Instant, instant, later, type Millis, millis } from "../time/time.ts";
import type { PlanCandidates, PlannedDeparture, PlanSpacing } from "./fleet-plan.ts";
import {
  type Classes,
  hasAllowedInstant,
  queued,
  sortOut,
  wallsOf,
  withMissed,
} from "./job-classes.ts";
import { type MissedPlan, placeMissed } from "./missed-plan.ts";
import { placeOverdue } from "./overdue-plan.ts";
import { isInTime, mayBeOnTime } from "./pace.ts";
import { byTime, departureOf, type Job, placeJobs } from "./planned-departure.ts";
import { largest } from "./spacing/largest.ts";
import {
  bestGapMs,
  earlyInstants,
  freeGapMs,
  type SpacingProblem,
  smallestGapMs,
  smallestStepMs,
  spacingOf,
} from "./spacing/spacing.ts";
import { unlessBetter } from "./standing-plan.ts";
import {
  budgetOverrides,
  clearOfLastStart,
  type QueueSpacing,
  queueOpensAt,
  turnsOf,
} from "./start-queue.ts";

export interface PlacedPolicy {
  readonly spacing: PlanSpacing;
  readonly departures: readonly PlannedDeparture[];
  /** The open hours from now to the last deadline. */
  readonly hours: OpenHours;
  readonly moved: number;
}

interface PolicyScene extends PlanCandidates {
  readonly hours: OpenHours;
}

/**
 * Plans the departures of one policy together (docs/planning.md): `Even` reaches the best gap;
 * `Late` reaches the smaller of that and `spacing.min`, with every departure as late as possible;
 * overdue nodes take what remains. Departures that missed their time are planned like any other if
 * all can keep `spacing.min`, otherwise around the others, within the reserve too.
 */
export function planPolicy(input: PlanCandidates): PlacedPolicy {
  const scene = { ...input, hours: hoursUntilLastDeadline(input) };
  if (!mayBeOnTime(input)) return planAfter(scene, { isOnTime: false });
  const onTime = planAfter(scene, { isOnTime: true });
  return isInTime(onTime.departures, input) ? onTime : planAfter(scene, { isOnTime: false });
}

/** The plan if the newest start counts as on time, or does not. */
function planAfter(scene: PolicyScene, { isOnTime }: { readonly isOnTime: boolean }): PlacedPolicy {
  const { policy, hours } = scene;
  const sorted = sortOut(scene, { hours, isOnTime });
  const found = isBestToWait(sorted, scene) ? withMissed(sorted, sorted.hasty) : sorted;
  const classes = isToBlame(found, scene) ? withMissed(found, found.crowded) : found;
  if (classes.missed.length === 0) {
    return placeClasses({ ...classes, beginsLate: undefined }, scene).placed;
  }
  const inTime = freeMissed(classes, scene);
  const gapInTime = strictGap(inTime, scene);
  if (gapInTime >= policy.spacing.minMs) return placeClasses(inTime, scene).placed;
  const apart = placeClasses(classes, scene);
  // Without a reserve, the gap is wider with all of them in one plan.
  const isNarrow = inTime.missed.length === 0 && apart.missedGapMs < gapInTime;
  return isNarrow ? placeClasses(inTime, scene).placed : apart.placed;
}

/** Whether a late start, and not their own number, keeps the others from `spacing.min`. */
function isToBlame(classes: Classes, scene: PolicyScene): boolean {
  const { crowded, late } = classes;
  if (crowded.size === 0 || late === undefined) return false;
  const problem = problemOf(classes, scene);
  const lastStart = { at: late.plannedAt, leastGap: 0 };
  const onTime = spacingOf({ ...problem, lastStart });
  return earlyInstants(onTime, scene.policy.spacing.minMs) !== undefined;
}

/**
 * Whether departures that are due too soon after the newest start can leave later at a wider gap.
 * It was late, or the plan would have moved them and no move could be recorded: writes may be
 * refused for hours.
 */
function isBestToWait(classes: Classes, scene: PolicyScene): boolean {
  const { hasty, pace } = classes;
  if (hasty.size === 0) return false;
  const { leftAt = Number.NEGATIVE_INFINITY, lagMs } = pace;
  const wait = freeMissed(withMissed(classes, hasty), scene);
  if (wait.missed.some((job) => hasty.has(job))) return false;
  return scene.at - leftAt < strictGap(wait, scene) - lagMs;
}

/** Frees missed departures that still have an allowed instant. */
function freeMissed(classes: Classes, { hours }: PolicyScene): Classes {
  const open = openTime(hours.spans);
  const { true: inTime = [], false: missed = [] } = Object.groupBy(classes.missed, (job) =>
    hasAllowedInstant(job, open) ? "true" : "false",
  );
  return { ...classes, free: [...classes.free, ...inTime], missed };
}

/** The gap that all free jobs can keep, also from the newest start: at most `spacing.min`. */
function strictGap(classes: Classes, scene: PolicyScene): number {
  const { minMs } = scene.policy.spacing;
  const at = leftAt(classes, scene);
  const lastStart = at === undefined ? undefined : { at, leastGap: 0 };
  const spacing = spacingOf({ ...problemOf(classes, scene), lastStart });
  return earlyInstants(spacing, minMs) === undefined ? freeGapMs(spacing, 0) : minMs;
}

function problemOf({ free, forced, due, ...classes }: Classes, scene: PolicyScene): SpacingProblem {
  const walls = wallsOf(due.filter((one) => one !== classes.beginsLate));
  return {
    jobs: free,
    open: openTime(scene.hours.spans),
    fixed: [...forced.map(({ deadline }) => deadline), ...walls],
  };
}

/** When the policy last started a departure; now, if a late one starts now. */
function leftAt({ beginsLate, pace }: Classes, { at }: PolicyScene): Instant | undefined {
  return beginsLate === undefined ? asInstant(pace.leftAt) : at;
}

interface Placing {
  readonly placed: PlacedPolicy;
  readonly missedGapMs: number;
}

function placeClasses(classes: Classes, scene: PolicyScene): Placing {
  const { policy, hours } = scene;
  const { mode, minMs } = policy.spacing;
  const { planned, bestMs } = placeInTime(classes, scene);
  const lastStart = leftAt(classes, scene);
  const missed = placeMissedOf(classes, { ...scene, planned });
  const around = { ...scene, placed: planned, apart: missed.departures, lastStart };
  const inTurn = [...planned, ...missed.departures];
  const best =
    classes.missed.length === 0 ? bestMs : bestWithMissed(classes, { ...scene, placed: inTurn });
  const overdue = placeOverdue(classes, around);
  const placed = unlessBetter([...inTurn, ...overdue], jobsOf(classes), scene).toSorted(byTime);
  const departures = withQueue(placed, classes, {
    // Without the late departure that starts now: it does not wait for itself.
    lastStart: scene.newestStart?.at,
    ...{ hours, minMs, at: scene.at },
    gap: bestMs === null || bestMs >= minMs ? minMs : movableGap(classes, scene),
  });
  const spacing = {
    wantedMs: mode === "Late" ? minMs : null,
    reachedMs: asMillis(smallestStepMs(departures.map((one) => one.departAt))),
    bestMs: asMillis(best),
  };
  const moved = departures.filter((departure) => departure.movedFrom !== undefined).length;
  return { placed: { spacing, departures, hours, moved }, missedGapMs: missed.gapMs };
}

/** The gap that departures keep whose instants can be chosen: at most `spacing.min`. */
function movableGap(classes: Classes, scene: PolicyScene): number {
  const { minMs } = scene.policy.spacing;
  if (classes.free.length === 0) return minMs;
  return Math.min(minMs, freeGapMs(spacingOf(problemAfterStart(classes, scene)), 0));
}

function jobsOf({ free, forced, missed, overdue, due, overdueDue }: Classes): readonly Job[] {
  const waiting = [...due, ...overdueDue].map(({ job }) => job);
  return [...free, ...forced, ...missed, ...overdue, ...waiting];
}

/**
 * The best gap of a plan that treats missed departures like all others. Departures within the
 * reserve may be further apart than in any plan that keeps the deadlines.
 */
function bestWithMissed(
  classes: Classes,
  { placed, ...scene }: PolicyScene & { readonly placed: readonly PlannedDeparture[] },
): number | null {
  const { missed, ...freed } = freeMissed(classes, scene);
  const shut = missed.filter(({ deadline }) => deadline >= scene.at);
  const all = { ...freed, forced: [...freed.forced, ...shut], missed: [] };
  const best = bestGapMs(spacingOf(problemAfterStart(all, scene)));
  const usesReserve = placed.some(({ reason }) => reason === "Missed");
  const reached = usesReserve ? smallestGapMs(placed.map((one) => one.departAt)) : null;
  return reached === null ? best : Math.max(reached, best ?? 0);
}

/**
 * Departures that can no longer choose their instants start a gap apart. Those that are planned
 * before the last of them has to start will wait as well, and count already.
 */
function withQueue(
  placed: readonly PlannedDeparture[],
  { due, overdueDue, pace }: Classes,
  { hours, ...spacing }: QueueSpacing & Pick<PolicyScene, "hours" | "at">,
): readonly PlannedDeparture[] {
  const inQueue = new Set(
    queued([...due, ...overdueDue], spacing.lastStart).map(({ job }) => job.candidate.node.uid),
  );
  // One start on time delays no other: each would delay all later ones by its own lag.
  const afterStart = { ...spacing, lastStart: asInstant(pace.leftAt) };
  const apart = (one: PlannedDeparture) => clearOf(afterStart, one, hours);
  if (inQueue.size === 0) return placed.map(apart);
  const queue = placed.filter((one) => inQueue.has(one.node.uid));
  const lastEnd = queue.reduce((last, { endsAt }) => Math.max(last, endsAt), 0);
  const coming = placed.filter((one) => !inQueue.has(one.node.uid) && one.departAt <= lastEnd);
  const opensAt = queueOpensAt([...queue, ...coming], spacing);
  const overrides = budgetOverrides([...queue, ...coming], spacing);
  const turns = turnsOf(queue, { ...spacing, opensAt });
  return placed.map((one) => {
    if (!inQueue.has(one.node.uid)) return apart(one);
    const { beginAt, endsAt } = one;
    return {
      ...one,
      beginAt: opensAt === undefined ? beginAt : later(beginAt, opensAt),
      overridesBudgetAt: overrides.get(one) ?? endsAt,
      heldBackTo: turns.get(one),
    };
  });
}

/** Keeps a start clear of the newest one, if it can start later than planned. */
function clearOf(
  spacing: QueueSpacing,
  one: PlannedDeparture,
  { spans }: OpenHours,
): PlannedDeparture {
  const { lastStart = one.beginAt } = spacing;
  const clearAt = clearOfLastStart(spacing);
  if (clearAt === undefined || one.beginAt <= lastStart || one.beginAt >= clearAt) return one;
  const usesReserve = one.departAt > one.deadlineAt;
  const latest = usesReserve ? one.endsAt : previousOpen(openTime(spans), one.deadlineAt);
  return clearAt <= latest ? { ...one, beginAt: clearAt } : one;
}

interface InTime {
  readonly planned: readonly PlannedDeparture[];
  readonly bestMs: number | null;
}

/** Places the free jobs, those that are due, and those that leave at their deadlines. */
function placeInTime(classes: Classes, scene: PolicyScene): InTime {
  const { policy, hours } = scene;
  const { mode } = policy.spacing;
  const problem = problemAfterStart(classes, scene);
  const wanted = spacingOf(problem);
  const bestMs = bestGapMs(wanted);
  const goal = goalOf(policy, bestMs);
  const open = clearOfRequests(problem, { gap: goal, requested: scene.requested });
  const spacing = open === problem.open ? wanted : spacingOf({ ...problem, open });
  const seated = placeJobs({
    jobs: problem.jobs,
    spacing,
    mode,
    goal,
    goalIsBest: goal === bestMs,
  });
  const planned = seated.map((one) =>
    departureOf(one.job, { at: one.at, reason: "Spaced", hours }),
  );
  for (const { job, ...place } of classes.due) {
    planned.push(departureOf(job, { ...place, hours }));
  }
  for (const job of classes.forced) {
    planned.push(departureOf(job, { at: job.deadline, reason: "DeadlineBeatsWindow", hours }));
  }
  return { planned, bestMs };
}

function placeMissedOf(
  classes: Classes,
  scene: PolicyScene & { readonly planned: readonly PlannedDeparture[] },
): MissedPlan {
  const { policy, planned, requested, at } = scene;
  const { minMs } = policy.spacing;
  if (classes.missed.length === 0) return { departures: [], gapMs: minMs };
  const others: number[] = [
    ...planned.map(({ departAt }) => departAt),
    ...classes.overdueDue.map((one) => one.at),
    ...requested,
  ];
  const lastStart = leftAt(classes, scene);
  if (lastStart !== undefined) others.push(lastStart);
  return placeMissed(classes.missed, { at, policy, others });
}

/** The gap to reach if the best one is known; null is that of fewer than two departures. */
function goalOf({ spacing: { mode, minMs } }: Policy, best: number | null): number {
  return mode === "Late" ? Math.min(minMs, best ?? minMs) : (best ?? 0);
}

/**
 * The problem with the newest start as a neighbor. A node that cannot keep half of the others' gap
 * from it is exempt from it; but not one that can keep `spacing.min`, however far apart the others
 * could be. An exempt one keeps the room there is.
 */
function problemAfterStart(classes: Classes, scene: PolicyScene): JobProblem {
  const problem = { ...problemOf(classes, scene), jobs: classes.free };
  const at = leftAt(classes, scene);
  if (at === undefined) return problem;
  const { policy } = scene;
  const { minMs } = policy.spacing;
  const goal = goalOf(policy, bestGapMs(spacingOf(problem)));
  const leastGap = Math.min(Math.floor(goal / 2), minMs);
  const afterStart = { ...problem, lastStart: { at, leastGap } };
  return clearOfStart(afterStart);
}

interface JobProblem extends SpacingProblem {
  readonly jobs: readonly Job[];
}

/**
 * The problem in which the jobs that are exempt from the newest start leave as far from it as they
 * can, if all others can keep that distance from each other. Otherwise they might leave beside it.
 */
function clearOfStart(problem: JobProblem): JobProblem {
  const { jobs, open, lastStart } = problem;
  if (lastStart === undefined) return problem;
  const { at, leastGap } = lastStart;
  const lasts = new Map<Job, number>();
  let room = 0;
  for (const job of jobs) {
    const last = previousOpen(open, job.deadline);
    if (last >= at + leastGap) continue;
    lasts.set(job, last);
    room = Math.max(room, last - at);
  }
  if (lasts.size === 0) return problem;
  const clearBy = (distance: number): JobProblem => ({
    ...problem,
    jobs: jobs.map((job) => {
      const last = lasts.get(job);
      if (last === undefined) return job;
      return { ...job, release: Math.max(job.release, Math.min(last, at + distance)) };
    }),
  });
  const canKeep = (distance: number): boolean =>
    earlyInstants(spacingOf(clearBy(distance)), distance) !== undefined;
  return clearBy(largest({ limit: room }, canKeep));
}

function hoursUntilLastDeadline({ policy, candidates, at }: PlanCandidates): OpenHours {
  let last = at;
  for (const { deadlineAt } of candidates) last = later(last, deadlineAt);
  return openHours(policy.windows, { startAt: at, endAt: instant(last + 1) });
}

function asInstant(at: number | undefined): Instant | undefined {
  return at === undefined ? undefined : instant(at);
}

function asMillis(ms: number | null): Millis | null {
  return ms === null ? null : millis(ms);
}

export interface AroundRequests {
  /** The gap that the planned departures keep from each other. */
  readonly gap: number;
  /** When requested departures will start. */
  readonly requested: readonly number[];
}

/**
 * The open time that remains if planned departures keep away from requested ones: by the gap or, if
 * that is impossible, by as much as possible. A user's request takes precedence over the plan and
 * may come at any instant, so it never reduces the gap between planned departures.
 */
export function clearOfRequests(problem: SpacingProblem, around: AroundRequests): OpenTime {
  const { gap, requested } = around;
  if (requested.length === 0 || problem.jobs.length === 0) return problem.open;
  const walls = [...requested].sort((a, b) => a - b);
  const clearBy = (distance: number): OpenTime => keptAway(problem.open, walls, distance);
  const canKeep = (distance: number): boolean =>
    earlyInstants(spacingOf({ ...problem, open: clearBy(distance) }), gap) !== undefined;
  return clearBy(largest({ limit: gap }, canKeep));
}
