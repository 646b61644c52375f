import { type OpenHours, windowNameAt } from "../limits/windows.ts";
import { spanIndexAt } from "../time/span.ts";
import { earlier, type Instant, instant, later, minus, minutes, seconds } from "../time/time.ts";
import type { Candidate, PlanCandidates } from "./candidate.ts";
import type { PlannedDeparture, PlannedReason } from "./fleet-plan.ts";
import type { KeepableJob } from "./kept-plan.ts";

/** A candidate as the optimiser sees it. */
export interface Job extends KeepableJob {
  readonly candidate: Candidate;
}

interface Place {
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

/**
 * From the decision to the record in the cluster it takes a moment; the window is to be open then.
 */
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

/** How the newest start of a policy counts for those that come after it. */
export interface Pace {
  /** A start that is late by less is on time, as far as its neighbours are concerned. */
  readonly lagMs: number;
  /**
   * When a node was last made to leave; undefined where none was. A start that was on time counts
   * as its planned instant: else each start would push all later ones on by its own lag.
   */
  readonly leftAt: number | undefined;
  readonly isOnTime: boolean;
  /** The newest start, where it was late. */
  readonly late: LateStart | undefined;
}

/** A start after its time. Others that were planned far from it may stand too near to it now. */
export interface LateStart {
  readonly at: number;
  readonly plannedAt: number;
}

/**
 * Of the distance between the departures around now this share is a moment, within these bounds.
 */
const lagShare = 15;
const leastLagMs = seconds(1);
const mostLagMs = minutes(1);

export function paceOf(
  jobs: readonly Job[],
  input: Pick<PlanCandidates, "at" | "newestStart">,
): Pace {
  const { newestStart } = input;
  const plannedAt = newestStart?.plannedAt;
  const lagMs = lagOf(stepAround(jobs, { at: input.at, plannedAt }));
  if (newestStart === undefined) {
    return { lagMs, leftAt: undefined, isOnTime: true, late: undefined };
  }
  const { at } = newestStart;
  if (plannedAt !== undefined && at >= plannedAt && at - plannedAt < lagMs) {
    return { lagMs, leftAt: plannedAt, isOnTime: true, late: undefined };
  }
  const isLate = plannedAt !== undefined && plannedAt < at;
  return { lagMs, leftAt: at, isOnTime: false, late: isLate ? { at, plannedAt } : undefined };
}

function lagOf(stepMs: number): number {
  return Math.min(mostLagMs, Math.max(leastLagMs, stepMs / lagShare));
}

/**
 * The smallest distance between the newest start, those that are due and the next one, as planned.
 */
function stepAround(
  jobs: readonly Job[],
  { at, plannedAt }: { readonly at: number; readonly plannedAt: number | undefined },
): number {
  const stops = plannedAt === undefined ? [] : [plannedAt];
  let next = Number.POSITIVE_INFINITY;
  for (const { keptAt } of jobs) {
    if (keptAt === undefined) continue;
    if (keptAt > at) next = Math.min(next, keptAt);
    else stops.push(keptAt);
  }
  const sorted = Float64Array.from([...stops, next]).sort();
  let step = Number.POSITIVE_INFINITY;
  for (let place = 1; place < sorted.length; place += 1) {
    const distance = (sorted[place] as number) - (sorted[place - 1] as number);
    if (distance > 0) step = Math.min(step, distance);
  }
  return step;
}
