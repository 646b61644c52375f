import { assert } from "../../errors.ts";
import { nextOpen, openTime } from "../limits/gate.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import { type Instant, instant, later } from "../time/time.ts";
import type { PlannedDeparture } from "./fleet-plan.ts";
import { hasAllowedInstant } from "./job-classes.ts";
import { departureOf, type Job, keptShare } from "./planned-departure.ts";
import { largest } from "./spacing/largest.ts";
import { zonesInTurn } from "./spacing/slot-assignment.ts";
import { TakenInstants } from "./taken-instants.ts";

export interface AroundMissed {
  readonly at: Instant;
  readonly policy: Policy;
  /** Every other instant that counts: of departures that are planned, requested or started. */
  readonly others: readonly number[];
}

export interface MissedPlan {
  readonly departures: readonly PlannedDeparture[];
  /** The gap that they keep from each other and from all others; at most `spacing.min`. */
  readonly gapMs: number;
}

/**
 * Instants for departures that have missed theirs and cannot all be planned in time: the earliest
 * ones at `spacing.min` from every other departure, within the reserve too. If their lifetimes
 * leave too little time, the gap is as wide as fits. An instant from an earlier such plan that is
 * still ahead is kept. A departure without an open window before its deadline leaves at any hour
 * after it.
 */
export function placeMissed(jobs: readonly Job[], around: AroundMissed): MissedPlan {
  const { at, policy, others } = around;
  const { minMs } = policy.spacing;
  const endAt = jobs.reduce((last, { candidate }) => later(last, candidate.endsAt), at);
  const hours = openHours(policy.windows, { startAt: at, endAt: instant(endAt + 1) });
  const scene = { at, hours, others, order: zonesInTurn(jobs) };
  const gapMs = largest({ limit: minMs }, (gap) => slotsFor(scene, gap) !== undefined);
  const keepGap = gapMs === minMs ? gapMs : Math.floor(gapMs * keptShare);
  const slots = keptSlots(scene, keepGap) ?? slotsFor(scene, gapMs);
  assert(slots !== undefined, "with no gap at all each has room before its lifetime ends");
  const open = openTime(hours.spans);
  const departures = [...slots].map(([job, slot]) => {
    const inTime = slot <= job.deadline && nextOpen(open, slot) === slot;
    return departureOf(job, { at: slot, reason: inTime ? "Spaced" : "Missed", hours });
  });
  return { departures, gapMs };
}

interface MissedScene {
  readonly at: number;
  readonly hours: OpenHours;
  readonly others: readonly number[];
  readonly order: readonly Job[];
}

type Slots = ReadonlyMap<Job, number>;

/** The earliest instants in the given order; undefined if one is past the end of a lifetime. */
function slotsFor({ at, hours, others, order }: MissedScene, gap: number): Slots | undefined {
  const open = openTime(hours.spans);
  const anyHour = { lows: [at], highs: [Number.MAX_SAFE_INTEGER] };
  const taken = new TakenInstants(gap, others);
  const slots = new Map<Job, number>();
  for (const job of order) {
    const slot = hasAllowedInstant(job, open)
      ? taken.takeFirst(open, job.release)
      : taken.takeFirst(anyHour, Math.max(at, job.deadline));
    if (slot > job.candidate.endsAt) return undefined;
    slots.set(job, slot);
  }
  return slots;
}

/**
 * Departures that can keep their instants do, and the others are placed around them. Undefined if
 * there is no room, or if none can keep its instant.
 */
function keptSlots(scene: MissedScene, gap: number): Slots | undefined {
  const kept = new Map(keepable(scene, gap).map((job) => [job, job.keptAt ?? 0]));
  if (kept.size === 0) return undefined;
  const others = [...scene.others, ...kept.values()];
  const order = scene.order.filter((job) => !kept.has(job));
  const fresh = slotsFor({ ...scene, others, order }, gap);
  return fresh && new Map([...kept, ...fresh]);
}

/** The jobs whose instants are still ahead, allowed, and at least the gap from all others. */
function keepable({ at, hours, others, order }: MissedScene, gap: number): readonly Job[] {
  const open = openTime(hours.spans);
  const allowed = order.filter((job) => {
    const { keptAt = at, release, deadline, candidate } = job;
    if (keptAt <= at || keptAt > candidate.endsAt) return false;
    if (!hasAllowedInstant(job, open)) return keptAt >= deadline;
    return keptAt >= release && nextOpen(open, keptAt) === keptAt;
  });
  const taken = new TakenInstants(gap, others);
  return allowed.filter(({ keptAt = at }) => {
    if (!taken.isClear(keptAt)) return false;
    taken.take(keptAt);
    return true;
  });
}
