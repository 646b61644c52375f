import { nextOpen, type OpenTime, openTime, previousOpen, windowHold } from "../limits/gate.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import { type Instant, instant } from "../time/time.ts";
import type { Candidate, PlanCandidates, PlannedReason } from "./fleet-plan.ts";
import { type LateStart, type Pace, paceOf } from "./pace.ts";
import type { Job } from "./planned-departure.ts";
import { leastGapMs } from "./start-queue.ts";

/** A departure that is due but has not started. It keeps its instant. */
export interface DueDeparture {
  readonly job: Job;
  readonly at: number;
  /** The reason from the plan that set the instant. */
  readonly reason: PlannedReason;
  /** Whether it has been due for longer than the tolerated lag. */
  readonly isLate: boolean;
  /** Whether it leaves at its deadline in closed hours, one after the other of its kind. */
  readonly isForced?: boolean;
}

export interface DueTime extends Pick<PlanCandidates, "at" | "policy"> {
  /** When the windows open next; now, if they are open. */
  readonly opensAt: number;
  readonly pace: Pace;
}

/**
 * Due departures keep their instants, unless a hold has postponed them or the window has shut.
 * Departures that wait for a budget form a queue, which none leaves or overtakes, and so do those
 * that leave in closed hours. Of late departures, the oldest keeps its instant, and held ones keep
 * theirs until another node has left. Everything else that was missed, because a gate was shut or
 * no controller was running, is planned again, so that it does not all leave at once.
 */
function dueDepartures(jobs: readonly Job[], time: DueTime): readonly DueDeparture[] {
  const { at, opensAt, pace, policy } = time;
  const due: DueDeparture[] = [];
  const reopens = opensAt > at && windowHold(policy, at)?.retryAt !== undefined;
  for (const job of jobs) {
    const { keptAt, release, deadline, candidate } = job;
    if (keptAt === undefined || keptAt > at || release > at) continue;
    if (opensAt > at && opensAt <= deadline) continue;
    const reason = reasonOf(job, keptAt, policy);
    const isLate = at - keptAt > pace.lagMs && !candidate.waitsForBudget;
    if (reason === "Overdue" && reopens) continue;
    due.push({ job, at: keptAt, reason, isLate });
  }
  const sorted = forcedInQueue(due, time).sort((a, b) => a.at - b.at || a.job.rank - b.job.rank);
  const leftAt = pace.leftAt ?? Number.NEGATIVE_INFINITY;
  const isQueue = sorted.some(waitsForBudget);
  const kept = sorted.filter(({ job, at: dueAt, reason, isLate, isForced }, place) => {
    const { isHeld, endsAt } = job.candidate;
    if (isForced) return true;
    // Past its lifetime it leaves like an overdue one: others may have to leave before their ends.
    if (isLate && endsAt < at && !isHeld) return false;
    if (isLate) return leftAt <= dueAt && (place === 0 || isHeld);
    // A departure that was already due when another one left late is postponed once, and keeps the
    // new instant; but not past the end of its lifetime, which would make it overdue.
    const isLast = reason !== "Overdue" && endsAt <= at;
    return isQueue || pace.isOnTime || dueAt > leftAt || isLast;
  });
  return overdueInTurn(sorted, new Set(kept));
}

/**
 * Those that leave in closed hours are not late while they wait for each other: their queue may
 * take them past the end of their lifetimes, if there is no reserve.
 */
function forcedInQueue(due: readonly DueDeparture[], { at, policy }: DueTime): DueDeparture[] {
  const { length } = due.filter(isForcedNow);
  const longestMs = length * leastGapMs(policy.spacing.minMs);
  return due.map((one) => {
    const isQueued = isForcedNow(one) && at <= one.job.candidate.endsAt + longestMs;
    return isQueued ? { ...one, isLate: false, isForced: true } : one;
  });
}

function isForcedNow({ reason }: DueDeparture): boolean {
  return reason === "DeadlineBeatsWindow";
}

export function waitsForBudget({ job }: DueDeparture): boolean {
  return job.candidate.waitsForBudget;
}

/** No overdue node keeps an instant at which it would leave before one that is postponed. */
function overdueInTurn(
  sorted: readonly DueDeparture[],
  kept: ReadonlySet<DueDeparture>,
): readonly DueDeparture[] {
  let isPutOff = false;
  return sorted.filter((one) => {
    if (one.reason !== "Overdue" || waitsForBudget(one)) return kept.has(one);
    isPutOff ||= !kept.has(one);
    return !isPutOff;
  });
}

/**
 * The due departures that start one gap after another, whatever they were held by: all of them if
 * any waits for a budget, otherwise those that were due already when the last one started, and
 * those whose instants were not chosen, because they had no allowed one.
 */
export function queued(
  due: readonly DueDeparture[],
  lastStart: number | undefined,
): readonly DueDeparture[] {
  if (due.some(waitsForBudget)) return due;
  if (lastStart === undefined) return [];
  return due.filter(({ at, isForced }) => at <= lastStart || isForced);
}

/**
 * The instants that others keep their gap from, because they cannot be moved. Of late ones, and of
 * those in closed hours, only the newest counts: the gaps between them can no longer be improved.
 */
export function wallsOf(due: readonly DueDeparture[]): readonly number[] {
  const onTime = due.filter(({ isLate, isForced }) => !isLate && !isForced);
  return (onTime.length > 0 ? onTime : due.slice(-1)).map(({ at }) => at);
}

/** The late departure that starts now, if nothing holds it; departures on time go first. */
function lateDeparture(due: readonly DueDeparture[]): DueDeparture | undefined {
  const [first] = due;
  const begins = due.every(({ isLate }) => isLate) && first?.job.candidate.isHeld === false;
  return begins ? first : undefined;
}

/**
 * A departure past its deadline was overdue when first planned, or has missed its time; one at its
 * deadline may have had no choice.
 */
export function reasonOf(
  { deadline, candidate }: Job,
  keptAt: number,
  { windows }: PlanCandidates["policy"],
): PlannedReason {
  const { plannedInTime, endsAt } = candidate;
  if (keptAt > deadline) return plannedInTime && keptAt <= endsAt ? "Missed" : "Overdue";
  if (keptAt < deadline) return "Spaced";
  const hours = openHours(windows, { startAt: instant(keptAt), endAt: instant(keptAt + 1) });
  return hours.spans.length === 0 ? "DeadlineBeatsWindow" : "Spaced";
}

/** The nodes of one policy, classified by what determines their instants. */
export interface Classes {
  /** The optimiser chooses their instants. */
  readonly free: readonly Job[];
  /** No allowed instant: they leave at their deadline. */
  readonly forced: readonly Job[];
  /** Due, and waiting to start. */
  readonly due: readonly DueDeparture[];
  /** Their instants have passed: they are planned again. */
  readonly missed: readonly Job[];
  /** Those of `free` and `due` that are planned too soon after a late start. */
  readonly crowded: ReadonlySet<Job>;
  /** Those of `due` that would start sooner than `spacing.min` after the newest start. */
  readonly hasty: ReadonlySet<Job>;
  /** The late start. */
  readonly late: LateStart | undefined;
  /** Like `due`, for nodes that were overdue when first planned. */
  readonly overdueDue: readonly DueDeparture[];
  /** Past their deadline when first planned, or past their lifetime; oldest first. */
  readonly overdue: readonly Job[];
  readonly pace: Pace;
  /** The one of `due` that is late and starts now. */
  readonly beginsLate: DueDeparture | undefined;
}

export function sortOut(
  input: PlanCandidates,
  { hours, isOnTime }: { readonly hours: OpenHours; readonly isOnTime: boolean },
): Classes {
  const { candidates, at } = input;
  const open = openTime(hours.spans);
  const jobs = [...candidates].sort(oldestFirst).map((one, rank) => jobOf(one, rank, { open, at }));
  const pace = paceOf(jobs, input, isOnTime);
  const due = dueDepartures(jobs, { ...input, opensAt: nextOpen(open, at), pace });
  const beginsLate = lateDeparture(due);
  const late = beginsLate === undefined ? pace.late : { at, plannedAt: beginsLate.at };
  const waiting = new Set(due.map(({ job }) => job));
  const [free, forced, missed, overdue]: [Job[], Job[], Job[], Job[]] = [[], [], [], []];
  for (const job of jobs) {
    if (waiting.has(job)) continue;
    if (hasMissed(job, at)) missed.push(job);
    else if (job.deadline < at) overdue.push(job);
    else if (hasAllowedInstant(job, open)) free.push(job);
    else forced.push(job);
  }
  const planned = due.filter(({ reason }) => reason !== "Overdue");
  return {
    ...{ free, forced, missed, overdue, pace, late, beginsLate },
    crowded: crowdedBy(late, [...free, ...planned.map(({ job }) => job)], input),
    hasty: hastyAfter(pace, planned, input),
    due: planned,
    overdueDue: due.filter(({ reason }) => reason === "Overdue"),
  };
}

function crowdedBy(
  late: LateStart | undefined,
  jobs: readonly Job[],
  { policy, at }: PlanCandidates,
): ReadonlySet<Job> {
  if (late === undefined) return new Set();
  const untilAt = late.at + policy.spacing.minMs;
  // A node past its lifetime has no other instant to move to, and keeps the one it has.
  const placeable = jobs.filter(({ candidate }) => candidate.endsAt >= at);
  return new Set(placeable.filter(({ keptAt = 0 }) => keptAt > late.at && keptAt < untilAt));
}

/** Only those that nothing else holds or puts in a queue. */
function hastyAfter(
  { leftAt }: Pace,
  due: readonly DueDeparture[],
  { policy, at }: PlanCandidates,
): ReadonlySet<Job> {
  if (leftAt === undefined || at >= leftAt + policy.spacing.minMs) return new Set();
  const hasty = due.filter(({ job: { candidate }, isForced, at: dueAt }) => {
    const { isHeld, waitsForBudget, endsAt } = candidate;
    const isQueued = waitsForBudget || isForced === true || dueAt <= leftAt;
    return !isHeld && !isQueued && endsAt >= at;
  });
  return new Set(hasty.map(({ job }) => job));
}

/** The classes if these departures of `free` and `due` count as having missed their time. */
export function withMissed(classes: Classes, jobs: ReadonlySet<Job>): Classes {
  const { free, due, missed, beginsLate, pace, late } = classes;
  const isLate = beginsLate !== undefined && jobs.has(beginsLate.job);
  return {
    ...classes,
    free: free.filter((job) => !jobs.has(job)),
    due: due.filter(({ job }) => !jobs.has(job)),
    missed: [...missed, ...jobs],
    ...(isLate ? { beginsLate: undefined, late: pace.late } : { beginsLate, late }),
  };
}

export function hasAllowedInstant({ release, deadline }: Job, open: OpenTime): boolean {
  return nextOpen(open, release) <= deadline;
}

/**
 * Whether its instant has passed, or is past the deadline because an earlier one has passed. A
 * departure that a hold postpones has missed nothing.
 */
function hasMissed({ keptAt, release, deadline, candidate }: Job, at: number): boolean {
  const { plannedInTime, endsAt } = candidate;
  if (keptAt === undefined || !plannedInTime || endsAt < at) return false;
  if (keptAt > deadline) return keptAt <= endsAt && release <= Math.max(at, deadline);
  return keptAt <= at && release <= at;
}

function jobOf(
  candidate: Candidate,
  rank: number,
  when: { readonly open: OpenTime; readonly at: Instant },
): Job {
  const { zone, deadlineAt } = candidate;
  const release = isForced(candidate, when.at) ? when.at : rested(candidate, when);
  const keptAt = isOutdated(candidate, when.at) ? undefined : candidate.keptAt;
  return { candidate, zone, rank, release, deadline: deadlineAt, keptAt };
}

/**
 * Whether the instant was in time for a later deadline, which the node no longer has because the
 * lifetime was shortened. A node that is already past its deadline must not wait for that instant.
 */
function isOutdated({ keptAt, keptDeadlineAt, deadlineAt }: Candidate, at: Instant): boolean {
  if (keptAt === undefined || keptDeadlineAt === undefined) return false;
  return deadlineAt < at && at < keptAt && keptAt <= keptDeadlineAt;
}

/**
 * Whether a node that was planned in time has reached its deadline: from then on neither a hold
 * until a later instant nor a rest postpones it.
 */
function isForced({ keptAt, plannedInTime, deadlineAt, endsAt }: Candidate, at: Instant): boolean {
  return keptAt !== undefined && plannedInTime && deadlineAt <= at && at <= endsAt;
}

/**
 * The release after the rest that follows a rolled-back departure, as far as windows and deadline
 * allow; but never at once.
 */
function rested(
  { earliestAt, deadlineAt, rest }: Candidate,
  { open, at }: { readonly open: OpenTime; readonly at: Instant },
): number {
  if (rest === undefined) return earliestAt;
  const limit = deadlineAt < at ? rest.until : previousOpen(open, deadlineAt);
  return Math.max(earliestAt, rest.leastUntil, Math.min(rest.until, limit));
}

function oldestFirst(a: Candidate, b: Candidate): number {
  if (a.bornAt !== b.bornAt) return a.bornAt - b.bornAt;
  if (a.node.name !== b.node.name) return a.node.name < b.node.name ? -1 : 1;
  return a.node.uid < b.node.uid ? -1 : 1;
}
