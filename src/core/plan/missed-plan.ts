import { assert } from "../../errors.ts";
import { keptAway, nextOpen, type OpenTime, openTime } from "../limits/open-time.ts";
import { type OpenHours, openHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import { type Instant, instant, later } from "../time/time.ts";
import type { PlannedDeparture } from "./fleet-plan.ts";
import { keptShare } from "./kept-plan.ts";
import { firstFit, placeIn, zonesInTurn } from "./overdue-plan.ts";
import { hasAllowedInstant } from "./plan-class.ts";
import { departureOf, type Job } from "./planned-departure.ts";

export interface AroundMissed {
  readonly at: Instant;
  readonly policy: Policy;
  /** Every other instant that counts: of departures that are planned, asked for, or begun. */
  readonly others: readonly number[];
}

export interface MissedPlan {
  readonly departures: readonly PlannedDeparture[];
  /** The gap that they keep from each other and from all others; at most the one wanted. */
  readonly gapMs: number;
}

/**
 * Instants for departures that have missed theirs and cannot all be planned in time: the earliest
 * ones at `spacing.min` from every other departure, for which there is the reserve, too. Where
 * their lifetime leaves too little of it the gap is as wide as fits. What was planned so before and
 * is still to come stays where it is. One that has no open window before its deadline leaves at any
 * hour after it.
 */
export function placeMissed(jobs: readonly Job[], around: AroundMissed): MissedPlan {
  const { at, policy, others } = around;
  const { minMs } = policy.spacing;
  const endAt = jobs.reduce((last, { candidate }) => later(last, candidate.endsAt), at);
  const hours = openHours(policy.windows, { startAt: at, endAt: instant(endAt + 1) });
  const scene = { at, hours, others, order: zonesInTurn(jobs) };
  const gapMs = widestGap(scene, minMs);
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

interface Scene {
  readonly at: number;
  readonly hours: OpenHours;
  readonly others: readonly number[];
  readonly order: readonly Job[];
}

type Slots = ReadonlyMap<Job, number>;

function widestGap(scene: Scene, wanted: number): number {
  if (slotsFor(scene, wanted) !== undefined) return wanted;
  let kept = 0;
  let lost = wanted;
  while (lost - kept > 1) {
    const gap = Math.floor((kept + lost) / 2);
    if (slotsFor(scene, gap) === undefined) lost = gap;
    else kept = gap;
  }
  return kept;
}

/**
 * The earliest instants in the order given; undefined where one lies past the end of a lifetime.
 */
function slotsFor({ at, hours, others, order }: Scene, gap: number): Slots | undefined {
  const walls = [...others].sort((a, b) => a - b);
  const open = openTime(hours.spans);
  const inWindows = new CapacitySearch(keptAway(open, walls, gap), gap);
  const anyHour = { lows: [at], highs: [Number.MAX_SAFE_INTEGER] };
  const atAnyHour = new CapacitySearch(keptAway(anyHour, walls, gap), gap);
  const taken: number[] = [];
  const slots = new Map<Job, number>();
  for (const job of order) {
    const slot = hasAllowedInstant(job, open)
      ? inWindows.from(job.release, taken)
      : atAnyHour.from(Math.max(at, job.deadline), taken);
    if (slot > job.candidate.endsAt) return undefined;
    taken.splice(placeIn(taken, slot), 0, slot);
    slots.set(job, slot);
  }
  return slots;
}

/**
 * What was no room for one departure is none for the next that may leave from the same instant on.
 */
class CapacitySearch {
  readonly #open: OpenTime;
  readonly #gap: number;
  readonly #searchedTo = new Map<number, number>();

  constructor(open: OpenTime, gap: number) {
    this.#open = open;
    this.#gap = gap;
  }

  from(release: number, taken: readonly number[]): number {
    const start = this.#searchedTo.get(release) ?? release;
    const found = firstFit({ open: this.#open, taken, gap: this.#gap }, start);
    this.#searchedTo.set(release, found);
    return found;
  }
}

/**
 * Those that may stay where they are do, and the others find room around them. Undefined where
 * there is none, or where nobody may stay.
 */
function keptSlots(scene: Scene, gap: number): Slots | undefined {
  const kept = new Map(keepable(scene, gap).map((job) => [job, job.keptAt ?? 0]));
  if (kept.size === 0) return undefined;
  const others = [...scene.others, ...kept.values()];
  const order = scene.order.filter((job) => !kept.has(job));
  const fresh = slotsFor({ ...scene, others, order }, gap);
  return fresh && new Map([...kept, ...fresh]);
}

/** Those that are still to come, may leave then, and are the gap away from all others. */
function keepable({ at, hours, others, order }: Scene, gap: number): readonly Job[] {
  const open = openTime(hours.spans);
  const allowed = order.filter((job) => {
    const { keptAt = at, release, deadline, candidate } = job;
    if (keptAt <= at || keptAt > candidate.endsAt) return false;
    if (!hasAllowedInstant(job, open)) return keptAt >= deadline;
    return keptAt >= release && nextOpen(open, keptAt) === keptAt;
  });
  const taken = [...others].sort((a, b) => a - b);
  return allowed.filter(({ keptAt = at }) => {
    const place = placeIn(taken, keptAt);
    const before = taken[place - 1] ?? Number.NEGATIVE_INFINITY;
    const after = taken[place] ?? Number.POSITIVE_INFINITY;
    if (keptAt - before < gap || after - keptAt < gap) return false;
    taken.splice(place, 0, keptAt);
    return true;
  });
}
