import type { Candidate, PlanCandidates } from "./candidate.ts";
import { type DueDeparture, dueDepartures, wallsOf } from "./due-departure.ts";
import type { PlannedDeparture, PlanSpacing } from "./fleet-plan.ts";
import { seatJobs } from "./kept-plan.ts";
import { nextOpen, type OpenTime, openTime, previousOpen } from "./open-time.ts";
import { placeOverdue } from "./overdue-plan.ts";
import { byTime, departureOf, type Job } from "./planned-departure.ts";
import { clearOfRequests } from "./requested.ts";
import { bestGapMs, type SpacingProblem, smallestStepMs, spacingOf } from "./spacing.ts";
import { type Instant, instant, later, type Millis, millis } from "./time.ts";
import { type OpenHours, openHours } from "./windows.ts";

export interface PlacedPolicy {
  readonly spacing: PlanSpacing;
  readonly departures: readonly PlannedDeparture[];
  /** The open hours from now to the last deadline. */
  readonly hours: OpenHours;
  readonly moved: number;
}

/**
 * The departures of one policy, planned together. What a plan means is in the contract: `Even`
 * reaches the best gap, `Late` the smaller of that and `spacing.min` with every departure as late as
 * it can be, and overdue nodes take what is left.
 */
export function planPolicy(input: PlanCandidates): PlacedPolicy {
  const { policy, at } = input;
  const hours = hoursUntilLastDeadline(input);
  const classes = sortOut(input, hours);
  const { mode, minMs } = policy.spacing;
  const open = openTime(hours.spans);
  const fixed = [...classes.forced.map(({ deadline }) => deadline), ...wallsOf(classes.due, at)];
  const lastStart = input.newestStart?.at;
  const goalOf = (best: number | null): number =>
    mode === "Late" ? Math.min(minMs, best ?? minMs) : (best ?? 0);
  const problem = withPast({ jobs: classes.free, open, fixed }, { lastStart, goalOf, minMs });
  const wanted = spacingOf(problem);
  const bestMs = bestGapMs(wanted);
  const goal = goalOf(bestMs);
  const free = clearOfRequests(problem, { gap: goal, requested: input.requested });
  const spacing = free === open ? wanted : spacingOf({ ...problem, open: free });
  const seated = seatJobs({ jobs: classes.free, spacing, mode, goal, goalIsBest: goal === bestMs });
  const placed = seated.map((one) => departureOf(one.job, { at: one.at, reason: "Spaced", hours }));
  for (const { job, at: dueAt, reason } of classes.due) {
    placed.push(departureOf(job, { at: dueAt, reason, hours }));
  }
  for (const job of classes.forced) {
    placed.push(departureOf(job, { at: job.deadline, reason: "DeadlineBeatsWindow", hours }));
  }
  const overdue = placeOverdue(classes, { ...input, hours, placed, lastStart });
  const departures = [...placed, ...overdue].sort(byTime);
  return {
    spacing: {
      wantedMs: mode === "Late" ? minMs : null,
      reachedMs: asMillis(smallestStepMs(departures.map((one) => one.departAt))),
      bestMs: asMillis(bestMs),
    },
    departures,
    hours,
    moved: departures.filter((departure) => departure.movedFrom !== undefined).length,
  };
}

interface Past {
  readonly lastStart: number | undefined;
  readonly goalOf: (best: number | null) => number;
  readonly minMs: number;
}

/**
 * A node that cannot keep half of what the others could from the newest start is let off; but not one
 * that can keep `spacing.min` from it, however far apart the others could be.
 */
function withPast(problem: SpacingProblem, { lastStart, goalOf, minMs }: Past): SpacingProblem {
  if (lastStart === undefined) return problem;
  const half = Math.floor(goalOf(bestGapMs(spacingOf(problem))) / 2);
  const leastGap = Math.min(half, minMs);
  return { ...problem, lastStart: { at: lastStart, leastGap } };
}

interface Classes {
  /** The optimiser chooses their instants. */
  readonly free: readonly Job[];
  /** No allowed instant: they leave at their deadline. */
  readonly forced: readonly Job[];
  /** Their time has come and they wait to start. */
  readonly due: readonly DueDeparture[];
  /** The same of nodes that were planned past their deadline. */
  readonly overdueDue: readonly DueDeparture[];
  /** Past their deadline; oldest first. */
  readonly overdue: readonly Job[];
}

function sortOut(input: PlanCandidates, hours: OpenHours): Classes {
  const { candidates, at } = input;
  const open = openTime(hours.spans);
  const jobs = [...candidates].sort(oldestFirst).map((one, rank) => jobOf(one, rank, { open, at }));
  const due = dueDepartures(jobs, { ...input, opensAt: nextOpen(open, at) });
  const waiting = new Set(due.map(({ job }) => job));
  const free: Job[] = [];
  const shut: Job[] = [];
  const overdue: Job[] = [];
  for (const job of jobs) {
    if (waiting.has(job)) continue;
    if (job.deadline < at) overdue.push(job);
    else if (nextOpen(open, job.release) <= job.deadline) free.push(job);
    else shut.push(job);
  }
  return {
    free,
    forced: shut,
    due: due.filter(({ reason }) => reason !== "Overdue"),
    overdueDue: due.filter(({ reason }) => reason === "Overdue"),
    overdue,
  };
}

function jobOf(
  candidate: Candidate,
  rank: number,
  when: { readonly open: OpenTime; readonly at: Instant },
): Job {
  const { zone, keptAt, deadlineAt } = candidate;
  const release = rested(candidate, when);
  return { candidate, zone, rank, release, deadline: deadlineAt, keptAt };
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

function hoursUntilLastDeadline({ policy, candidates, at }: PlanCandidates): OpenHours {
  let last = at;
  for (const { deadlineAt } of candidates) last = later(last, deadlineAt);
  return openHours(policy.windows, { startAt: at, endAt: instant(last + 1) });
}

function asMillis(ms: number | null): Millis | null {
  return ms === null ? null : millis(ms);
}
