import { openHours } from "../limits/windows.ts";
import { instant } from "../time/time.ts";
import type { PlanCandidates } from "./candidate.ts";
import type { PlannedReason } from "./fleet-plan.ts";
import type { Pace } from "./pace.ts";
import type { Job } from "./planned-departure.ts";

/** A departure whose time has come. It has not begun yet, and keeps its instant. */
export interface DueDeparture {
  readonly job: Job;
  readonly at: number;
  /** That of the plan that gave it the instant. */
  readonly reason: PlannedReason;
  /** Whether it came more than a moment ago. */
  readonly isLate: boolean;
}

export interface DueTime extends Pick<PlanCandidates, "at" | "policy"> {
  /** When the windows open next, or now. */
  readonly opensAt: number;
  readonly pace: Pace;
}

/**
 * Departures whose time has come keep it, unless a hold has put it off or the window has shut. Those
 * that wait for a budget stand in a queue, which nobody leaves or overtakes. Of those that are late the
 * oldest keeps its time, and those that something holds do until another has left: whatever was missed,
 * be it that a gate was shut or that nobody looked, is planned again, so that it does not all leave at once.
 */
export function dueDepartures(jobs: readonly Job[], time: DueTime): readonly DueDeparture[] {
  const { at, opensAt, pace, policy } = time;
  const due: DueDeparture[] = [];
  for (const job of jobs) {
    const { keptAt, release, deadline, candidate } = job;
    if (keptAt === undefined || keptAt > at || release > at) continue;
    if (opensAt > at && opensAt <= deadline) continue;
    const isLate = at - keptAt > pace.lagMs && !candidate.waitsForBudget;
    due.push({ job, at: keptAt, reason: reasonOf(job, keptAt, policy), isLate });
  }
  const sorted = due.sort((a, b) => a.at - b.at || a.job.rank - b.job.rank);
  const leftAt = pace.leftAt ?? Number.NEGATIVE_INFINITY;
  const isQueue = sorted.some(waitsForBudget);
  const kept = sorted.filter(({ job, at: dueAt, isLate }, place) => {
    if (isLate) return leftAt <= dueAt && (place === 0 || job.candidate.isHeld);
    // Who was due already as another left late is put off once, and stays where that puts it.
    return isQueue || pace.isOnTime || dueAt > leftAt;
  });
  return overdueInTurn(sorted, new Set(kept));
}

export function waitsForBudget({ job }: DueDeparture): boolean {
  return job.candidate.waitsForBudget;
}

/** Of overdue nodes none keeps a time at which it would leave before one that is put off. */
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
 * From when on the first of those that wait for a budget may begin: a gap after the newest start, as far
 * as the lifetimes of all of them allow. Undefined where nobody waits.
 */
export function queueOpensAt(
  due: readonly DueDeparture[],
  { lastStart, gap }: { readonly lastStart: number; readonly gap: number },
): number | undefined {
  const queue = due.filter(waitsForBudget);
  if (queue.length === 0) return undefined;
  const gaps = queue
    .filter(({ reason }) => reason !== "Overdue")
    .map(({ job }, place) => (job.candidate.endsAt - lastStart) / (place + 1));
  return lastStart + Math.max(0, Math.min(gap, ...gaps));
}

/**
 * The instants that others keep their gap from: they cannot be moved. Of departures that are late only
 * the newest counts, because how near these lie to each other is past mending.
 */
export function wallsOf(due: readonly DueDeparture[]): readonly number[] {
  const onTime = due.filter(({ isLate }) => !isLate);
  return (onTime.length > 0 ? onTime : due.slice(-1)).map(({ at }) => at);
}

/** The one that is late and begins now, where nothing holds it: those on time go before it. */
export function lateDeparture(due: readonly DueDeparture[]): DueDeparture | undefined {
  const [first] = due;
  const begins = due.every(({ isLate }) => isLate) && first?.job.candidate.isHeld === false;
  return begins ? first : undefined;
}

/** Past its deadline is what was overdue from the first or missed its time, or it had no choice. */
function reasonOf(
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
