import { nextOpen, type OpenTime, openTime, previousOpen } from "../limits/open-time.ts";
import type { OpenHours } from "../limits/windows.ts";
import type { Instant } from "../time/time.ts";
import type { Candidate, PlanCandidates } from "./candidate.ts";
import { type Job, type LateStart, type Pace, paceOf } from "./planned-departure.ts";
import { type DueDeparture, dueDepartures, lateDeparture } from "./start.ts";

/** The nodes of one policy, by who has a say in their instants. */
export interface Classes {
  /** The optimiser chooses their instants. */
  readonly free: readonly Job[];
  /** No allowed instant: they leave at their deadline. */
  readonly forced: readonly Job[];
  /** Their time has come and they wait to start. */
  readonly due: readonly DueDeparture[];
  /** Their time has passed: they are planned again. */
  readonly missed: readonly Job[];
  /** Those among `free` and `due` that are planned right behind a late start. */
  readonly crowded: ReadonlySet<Job>;
  /** That start. */
  readonly late: LateStart | undefined;
  /** The same as `due` of nodes that were overdue from the first. */
  readonly overdueDue: readonly DueDeparture[];
  /** Past their deadline from the first, or past their lifetime; oldest first. */
  readonly overdue: readonly Job[];
  readonly pace: Pace;
  /** Of those that are due the one that is late and begins now. */
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
  // Past its lifetime a node has no other instant to go to, and keeps the one that it has.
  const placeable = jobs.filter(({ candidate }) => candidate.endsAt >= at);
  return new Set(placeable.filter(({ keptAt = 0 }) => keptAt > late.at && keptAt < untilAt));
}

/** Those that stand right behind a late start count as having missed their time as well. */
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
 * Its instant has passed, or lies past the deadline since an earlier one has passed. What a hold
 * puts off has missed nothing.
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
 * What was planned in time is put off no more once its deadline has come, by no hold until a later
 * instant and no rest.
 */
function isForced({ keptAt, plannedInTime, deadlineAt, endsAt }: Candidate, at: Instant): boolean {
  return keptAt !== undefined && plannedInTime && deadlineAt <= at && at <= endsAt;
}

/** The rest after a departure that was undone: as much of it as the deadline leaves. */
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
