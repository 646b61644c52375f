import { type OpenHours, windowNameAt } from "../limits/windows.ts";
import { spanIndexAt } from "../time/span.ts";
import { earlier, type Instant, instant, later, minus, seconds } from "../time/time.ts";
import type { Candidate } from "./candidate.ts";
import type { PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
import type { KeepableJob } from "./kept-plan.ts";

/** A candidate as the optimiser sees it. */
export interface Job extends KeepableJob {
  readonly candidate: Candidate;
}

export interface Place {
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

/** From the decision to the record in the cluster it takes a moment; the window is to be open then. */
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
