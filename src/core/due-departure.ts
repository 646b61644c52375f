import type { PlanCandidates } from "./candidate.ts";
import type { PlannedReason } from "./fleet-plan.ts";
import type { Job } from "./planned-departure.ts";
import { instant, minutes } from "./time.ts";
import { openHours } from "./windows.ts";

/** A departure whose time has come. It has not begun yet, and keeps its instant. */
export interface DueDeparture {
  readonly job: Job;
  readonly at: number;
  /** That of the plan that gave it the instant. */
  readonly reason: PlannedReason;
}

export interface DueTime extends Pick<PlanCandidates, "at" | "newestStart" | "policy"> {
  /** When the windows open next, or now. */
  readonly opensAt: number;
}

/** A departure that has been due for longer than this was held back by something. */
const heldBackAfterMs = minutes(1);

/**
 * Departures whose time has come keep it, unless a hold has put it off or the window has shut. Those
 * that something has held back for long do so until another has left; then they are planned anew, so
 * that they do not all leave at once when a gate opens. Of those that nobody has looked at for long
 * only the oldest does.
 */
export function dueDepartures(jobs: readonly Job[], time: DueTime): readonly DueDeparture[] {
  const { at, opensAt, newestStart, policy } = time;
  const leftAt = newestStart?.at ?? Number.NEGATIVE_INFINITY;
  const isOnTime = newestStart?.isOnTime ?? true;
  const due: DueDeparture[] = [];
  for (const job of jobs) {
    const { keptAt, release, deadline } = job;
    if (keptAt === undefined || keptAt > at || release > at) continue;
    if (opensAt > at && opensAt <= deadline) continue;
    due.push({ job, at: keptAt, reason: reasonOf({ at: keptAt, deadline }, policy) });
  }
  const sorted = due.sort((a, b) => a.at - b.at || a.job.rank - b.job.rank);
  return sorted.filter(({ job, at: dueAt }, place) => {
    if (job.deadline < at) return true;
    // Who was due already as another left late is put off once, and stays where that puts it.
    if (at - dueAt <= heldBackAfterMs) return isOnTime || dueAt > leftAt;
    return leftAt <= dueAt && (place === 0 || job.candidate.isHeld);
  });
}

/**
 * The instants that others keep their gap from: they cannot be moved. Of departures that were held
 * back for long only the newest counts, because how near these lie to each other is past mending.
 */
export function wallsOf(due: readonly DueDeparture[], now: number): readonly number[] {
  const onTime = due.filter(({ at }) => now - at <= heldBackAfterMs);
  return (onTime.length > 0 ? onTime : due.slice(-1)).map(({ at }) => at);
}

interface DueInstant {
  readonly at: number;
  readonly deadline: number;
}

/** Only an overdue node is planned past its deadline, and only one without a choice while it is shut. */
function reasonOf(
  { at, deadline }: DueInstant,
  { windows }: PlanCandidates["policy"],
): PlannedReason {
  if (at > deadline) return "Overdue";
  if (at < deadline) return "Spaced";
  const hours = openHours(windows, { startAt: instant(at), endAt: instant(at + 1) });
  return hours.spans.length === 0 ? "DeadlineBeatsWindow" : "Spaced";
}
