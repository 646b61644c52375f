import type { Candidate } from "./candidate.ts";
import type { PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
import type { KeepableJob } from "./kept-plan.ts";
import { instant } from "./time.ts";
import { type OpenHours, windowNameAt } from "./windows.ts";

/** A candidate as the optimiser sees it. */
export interface Job extends KeepableJob {
  readonly candidate: Candidate;
}

export interface Place {
  readonly at: number;
  readonly reason: PlannedReason;
  readonly hours: OpenHours;
}

/** What becomes of a candidate that has its instant. */
export function departureOf({ candidate }: Job, { at, reason, hours }: Place): PlannedDeparture {
  const { node, zone, bornAt, bornFrom, earliestAt, deadlineAt, keptAt } = candidate;
  const departAt = instant(at);
  return {
    node,
    zone,
    bornAt,
    bornFrom,
    earliestAt,
    deadlineAt,
    departAt,
    window: reason === "DeadlineBeatsWindow" ? null : windowNameAt(hours, departAt),
    reason,
    movedFrom: keptAt === undefined || keptAt === departAt ? undefined : keptAt,
  };
}

export function byTime(a: PlannedDeparture, b: PlannedDeparture): number {
  if (a.departAt !== b.departAt) return a.departAt - b.departAt;
  return a.node.name < b.node.name ? -1 : 1;
}
