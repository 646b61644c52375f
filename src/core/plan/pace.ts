import { minutes, seconds } from "../time/time.ts";
import type { PlanCandidates, PlannedDeparture } from "./fleet-plan.ts";
import type { Job } from "./planned-departure.ts";

/** How the newest start of a policy affects the departures after it. */
export interface Pace {
  /** A start that is late by less than this counts as on time for its neighbours. */
  readonly lagMs: number;
  /**
   * When the policy last started a departure; undefined if never. A start that was on time counts
   * at its planned instant: otherwise each start would delay all later ones by its own lag.
   */
  readonly leftAt: number | undefined;
  readonly isOnTime: boolean;
  /** The newest start, if it was late. */
  readonly late: LateStart | undefined;
}

/** A late start. Departures that were planned far from it may be too close to it now. */
export interface LateStart {
  readonly at: number;
  readonly plannedAt: number;
}

/**
 * The tolerated lag is the distance between the departures around now divided by this, within these
 * bounds.
 */
const lagShare = 15;
const leastLagMs = seconds(1);
const mostLagMs = minutes(1);

type StartedPolicy = Pick<PlanCandidates, "at" | "newestStart">;

/**
 * Whether the newest start may count at its planned instant: one that was late by less than any
 * tolerated lag does, and one that was late by more does not. In between it depends on the plan
 * that follows from it (`isInTime`).
 */
export function mayBeOnTime({ newestStart }: StartedPolicy): boolean {
  const lateMs = lateness(newestStart);
  return lateMs !== undefined && lateMs >= 0 && lateMs < mostLagMs;
}

/**
 * Whether the newest start is on time for the departures that were planned as if it were. This does
 * not depend on the instants that they had before: these are further away if it counted as late,
 * so that it would count as on time then, and as late again with the next plan.
 */
export function isInTime(departures: readonly PlannedDeparture[], policy: StartedPolicy): boolean {
  const lateMs = lateness(policy.newestStart) ?? 0;
  const departAts = departures.map((one) => one.departAt);
  return lateMs < lagOf(stepAround(departAts, policy));
}

function lateness(start: PlanCandidates["newestStart"]): number | undefined {
  return start?.plannedAt === undefined ? undefined : start.at - start.plannedAt;
}

/** The pace after the newest start, which counts as on time or not. */
export function paceOf(jobs: readonly Job[], policy: StartedPolicy, isOnTime: boolean): Pace {
  const { newestStart } = policy;
  const kept = jobs.flatMap(({ keptAt }) => keptAt ?? []);
  const lagMs = lagOf(stepAround(kept, policy));
  if (newestStart === undefined) {
    return { lagMs, leftAt: undefined, isOnTime: true, late: undefined };
  }
  const { at, plannedAt } = newestStart;
  if (isOnTime && plannedAt !== undefined) {
    return { lagMs, leftAt: plannedAt, isOnTime, late: undefined };
  }
  const isLate = plannedAt !== undefined && plannedAt < at;
  return { lagMs, leftAt: at, isOnTime: false, late: isLate ? { at, plannedAt } : undefined };
}

function lagOf(stepMs: number): number {
  return Math.min(mostLagMs, Math.max(leastLagMs, stepMs / lagShare));
}

/** The smallest planned distance between the newest start, the due departures and the next one. */
function stepAround(instants: readonly number[], { at, newestStart }: StartedPolicy): number {
  const plannedAt = newestStart?.plannedAt;
  const stops = plannedAt === undefined ? [] : [plannedAt as number];
  let next = Number.POSITIVE_INFINITY;
  for (const one of instants) {
    if (one > at) next = Math.min(next, one);
    else stops.push(one);
  }
  const sorted = Float64Array.from([...stops, next]).sort();
  let step = Number.POSITIVE_INFINITY;
  for (let place = 1; place < sorted.length; place += 1) {
    const distance = (sorted[place] as number) - (sorted[place - 1] as number);
    if (distance > 0) step = Math.min(step, distance);
  }
  return step;
}
