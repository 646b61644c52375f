import { nextOpen, type OpenTime, openTime, previousOpen } from "../limits/open-time.ts";
import type { OpenHours } from "../limits/windows.ts";
import type { Instant } from "../time/time.ts";
import type { Candidate, PlanCandidates } from "./candidate.ts";
import { type Job, type LateStart, type Pace, paceOf } from "./planned-departure.ts";
import { type DueDeparture, dueDepartures, lateDeparture } from "./start.ts";

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

export function sortOut(input: PlanCandidates, hours: OpenHours): Classes {
  const { candidates, at } = input;
  const open = openTime(hours.spans);
  const jobs = [...candidates].sort(oldestFirst).map((one, rank) => jobOf(one, rank, { open, at }));
  const pace = paceOf(jobs, input);
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

/** Departures planned too soon after a late start count as having missed their time as well. */
export function withCrowdedMissed(classes: Classes): Classes {
  const { crowded, free, due, missed } = classes;
  return {
    ...classes,
    free: free.filter((job) => !crowded.has(job)),
    due: due.filter(({ job }) => !crowded.has(job)),
    missed: [...missed, ...crowded],
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
  const { zone, keptAt, deadlineAt } = candidate;
  const release = isForced(candidate, when.at) ? when.at : rested(candidate, when);
  return { candidate, zone, rank, release, deadline: deadlineAt, keptAt };
}

/**
 * Whether a node that was planned in time has reached its deadline: from then on neither a hold
 * until a later instant nor a rest postpones it.
 */
function isForced({ keptAt, plannedInTime, deadlineAt, endsAt }: Candidate, at: Instant): boolean {
  return keptAt !== undefined && plannedInTime && deadlineAt <= at && at <= endsAt;
}

/**
 * The release after the rest that follows a rolled-back departure, as far as the deadline allows.
 */
function rested(
  { earliestAt, deadlineAt, restUntil }: Candidate,
  { open, at }: { readonly open: OpenTime; readonly at: Instant },
): number {
  if (restUntil === undefined) return earliestAt;
  const limit = deadlineAt < at ? restUntil : previousOpen(open, deadlineAt);
  return Math.max(earliestAt, Math.min(restUntil, limit));
}

function oldestFirst(a: Candidate, b: Candidate): number {
  if (a.bornAt !== b.bornAt) return a.bornAt - b.bornAt;
  if (a.node.name !== b.node.name) return a.node.name < b.node.name ? -1 : 1;
  return a.node.uid < b.node.uid ? -1 : 1;
}
