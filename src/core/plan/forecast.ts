import { amountOf } from "../limits/budget.ts";
import {
  capacityAt,
  counts,
  durationOf,
  limits,
  type Meter,
  type MeteredFleet,
  type MeteredStart,
  metersOf,
  record,
} from "../limits/budget-meter.ts";
import { nextOpen, type OpenTime, openTime } from "../limits/gate.ts";
import { type OpenHours, occurrences } from "../limits/windows.ts";
import type { Policy, Window } from "../policy/policy.ts";
import {
  type Instant,
  instant,
  later,
  type Span,
  spanIndexAt,
  subtractSpans,
} from "../time/time.ts";
import type { Forecast, NeededAmount, PlannedDeparture, TightBudget } from "./fleet-plan.ts";

interface ForecastInput {
  readonly policy: Policy;
  readonly departures: readonly PlannedDeparture[];
  readonly hours: OpenHours;
  readonly budgets: BudgetForecast;
}

/**
 * Forecasts whether one policy's plan can be kept. It is infeasible for a node that has no allowed
 * instant before its deadline, is overdue, has missed its instant and leaves past its deadline, or
 * would be held past it by budgets. `widenBySeconds` is about windows only: a longer window does
 * not help against a budget, whose required value is in `tight`.
 */
export function forecastPolicy(input: ForecastInput): Forecast {
  const { policy, departures, hours, budgets } = input;
  const { heldBackTo, pastDeadline } = budgets;
  const barred = departures.filter((one) => one.reason === "DeadlineBeatsWindow");
  const shut = barred.filter(({ barrier }) => barrier?.by !== "Hold");
  const late = departures.filter((one) => one.reason !== "Spaced" || pastDeadline.has(one));
  const { widenBySeconds, helpless } = wideningFor(shut, { windows: policy.windows, hours });
  return {
    feasible: late.length === 0,
    late: late.map((one) => one.node.name),
    widenBySeconds,
    helpless,
    onHold: barred.length - shut.length,
    shut: shut.length,
    overdue: late.filter((one) => one.reason === "Overdue").length,
    expiring: late.filter((one) => isExpiring(one, hours.bounds.startAt)).length,
    missed: late.filter((one) => one.reason === "Missed").length,
    heldBack: heldBackTo.size === 0 ? 0 : departures.filter((one) => heldBackTo.has(one)).length,
    heldPastDeadline: late.filter((one) => pastDeadline.has(one)).length,
    tight: budgets.tight.get(policy.name) ?? [],
  };
}

function isExpiring({ reason, departAt, endsAt }: PlannedDeparture, at: Instant): boolean {
  return reason === "Overdue" && at < endsAt && endsAt < departAt;
}

/** A node without an allowed instant between these two (inclusive). */
interface ShutRange {
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
}

interface Widening {
  /** Whole seconds; 0 if longer windows would not help. */
  readonly widenBySeconds: number;
  /** How many ranges no longer window would help, because a Deny window or hold covers them. */
  readonly helpless: number;
}

/**
 * The smallest number of whole seconds by which every opening of every Allow window would have to
 * end later for each of these ranges to have an allowed instant. Exact: a growing opening enters a
 * stretch without Deny windows at the start of that stretch, and the first opening to enter it is
 * the one that ends last among those that have started by then.
 */
export function wideningFor(
  ranges: readonly ShutRange[],
  { windows, hours }: { readonly windows: readonly Window[]; readonly hours: OpenHours },
): Widening {
  if (ranges.length === 0) return { widenBySeconds: 0, helpless: 0 };
  const openings = openingsUpTo(windows, hours.bounds);
  let mostMs = 0;
  let helpless = 0;
  for (const range of ranges) {
    const ms = neededMs(range, { deny: hours.deny, openings });
    if (Number.isFinite(ms)) mostMs = Math.max(mostMs, ms);
    else helpless += 1;
  }
  return { widenBySeconds: Math.ceil(mostMs / 1000), helpless };
}

/** Openings by their start, each ending as late as any that starts no later. */
function openingsUpTo(windows: readonly Window[], bounds: Span): readonly Span[] {
  const all = windows
    .filter((window) => window.type === "Allow")
    .flatMap((window) => occurrences(window, bounds))
    .sort((a, b) => a.startAt - b.startAt);
  let endAt = instant(Number.NEGATIVE_INFINITY);
  return all.map((opening) => {
    endAt = instant(Math.max(endAt, opening.endAt));
    return { startAt: opening.startAt, endAt };
  });
}

interface Obstacles {
  readonly deny: readonly Span[];
  readonly openings: readonly Span[];
}

/**
 * The widening for one range; Infinity if none helps. Windows are half-open: to contain an instant,
 * a window has to end after it.
 */
function neededMs({ earliestAt, deadlineAt }: ShutRange, { deny, openings }: Obstacles): number {
  const range = { startAt: earliestAt, endAt: instant(deadlineAt + 1) };
  const stretches = range.startAt < range.endAt ? subtractSpans([range], deny) : [];
  let least = Number.POSITIVE_INFINITY;
  for (const { startAt } of stretches) {
    const opening = openings[spanIndexAt(openings, startAt)];
    if (opening !== undefined) least = Math.min(least, startAt - opening.endAt + 1);
  }
  return least;
}

/** The part of a policy's plan that the forecast needs. */
export interface PlannedStarts extends MeteredFleet {
  /** In chronological order. */
  readonly departures: readonly PlannedDeparture[];
  /** Requested departures, which wait for budgets, and count in budgets and waves. */
  readonly requested: readonly RequestedStart[];
  readonly hours: OpenHours;
}

export interface RequestedStart {
  readonly departAt: Instant;
  readonly zone: string;
}

interface ForecastStarts {
  readonly plans: readonly PlannedStarts[];
  /** Past starts that may still count; an ended one counts only in hourly budgets. */
  readonly earlier: readonly EarlierStart[];
}

export interface EarlierStart extends MeteredStart {
  readonly state: "UnderWay" | "Ended";
  /** False for interruptions, which waves do not count. */
  readonly voluntary: boolean;
}

interface BudgetForecast {
  /** When each departure is expected to start, if not at its planned instant. */
  readonly heldBackTo: ReadonlyMap<PlannedDeparture, Instant>;
  /** Departures that budgets hold past their deadline. */
  readonly pastDeadline: ReadonlySet<PlannedDeparture>;
  /** By policy: the budgets that hold starts. */
  readonly tight: ReadonlyMap<string, readonly TightBudget[]>;
}

/** A requested departure has no deadline and does not wait for windows. */
type ForecastStart = PlannedDeparture | RequestedStart;

/**
 * The departures of one policy and zone, which wait for the same budgets, in order.
 */
interface StartQueue {
  readonly policy: Policy;
  readonly departures: readonly ForecastStart[];
  readonly zone: string;
  readonly open: OpenTime;
  readonly meters: readonly Meter[];
  readonly fed: readonly Meter[];
  /** When the forecast is made. */
  readonly from: Instant;
  next: number;
  at: number;
  /** Whether the next one has been held before. */
  waiting: boolean;
}

/**
 * Simulates the plan against the budgets: every departure starts at its planned instant or, if a
 * budget is used up, at the next allowed instant. Waves and windows hold it until its deadline,
 * budgets until the pass would override them. Each departure is assumed to use its budget of nodes,
 * and its wave, for `drain.timeout`, and to succeed. A forecast without a late node is what the
 * passes then do (test/core/plan/forecast-kept.test.ts).
 */
export function forecastBudgets({ plans, earlier }: ForecastStarts, at: Instant): BudgetForecast {
  const meters = plans.flatMap(metersOf);
  const heldBackTo = new Map<PlannedDeparture, Instant>();
  const pastDeadline = new Set<PlannedDeparture>();
  if (meters.length === 0) return { heldBackTo, pastDeadline, tight: new Map() };
  for (const start of earlier) {
    for (const meter of meters) {
      if (countsEarlier(meter, start)) record(meter, start);
    }
  }
  const queues = plans.flatMap((plan) => queuesOf(plan, { meters, at }));
  for (let queue = soonest(queues); queue !== undefined; queue = soonest(queues)) {
    const departure = queue.departures[queue.next];
    if (departure === undefined) break;
    const turn = tryStart(queue, departure);
    if (turn === "Waits") continue;
    for (const meter of queue.fed) record(meter, { ...queue, at: queue.at });
    if (isPlanned(departure)) {
      const isPlannedLate = departure.departAt > departure.deadlineAt;
      if (turn === "Late" && !isPlannedLate) pastDeadline.add(departure);
      if (queue.at > dueAt(queue, departure)) heldBackTo.set(departure, instant(queue.at));
    }
    queue.next += 1;
    queue.waiting = false;
    queue.at = Math.max(queue.at, queue.departures[queue.next]?.departAt ?? 0);
  }
  return { heldBackTo, pastDeadline, tight: tightBudgets({ plans, earlier }, meters) };
}

/** A departure that has ended counts only in hourly budgets, an interruption in no wave. */
function countsEarlier(meter: Meter, start: EarlierStart): boolean {
  const isOver = start.state === "Ended" && meter.durationMs === undefined;
  const isOutside = meter.waves !== undefined && !start.voluntary;
  return !isOver && !isOutside && counts(meter, start);
}

function queuesOf(
  plan: PlannedStarts,
  { meters, at }: { readonly meters: readonly Meter[]; readonly at: Instant },
): readonly StartQueue[] {
  const { policy } = plan;
  const open = openTime(plan.hours.spans);
  const linesFrom = (
    starts: readonly ForecastStart[],
    limiting: readonly Meter[],
  ): readonly StartQueue[] =>
    [...Map.groupBy(starts, ({ zone }) => zone)].map(([zone, departures]) => {
      const start = { policy, zone, at: 0 };
      return {
        ...{ policy, zone, departures, open, from: at, next: 0, waiting: false },
        meters: limiting.filter((meter) => limits(meter, start)),
        fed: meters.filter((meter) => counts(meter, start)),
        at: Math.max(at, departures[0]?.departAt ?? 0),
      };
    });
  // A person's request waits for no wave.
  const budgets = meters.filter(({ waves }) => waves === undefined);
  const requested = plan.requested.toSorted((a, b) => a.departAt - b.departAt);
  return [...linesFrom(plan.departures, meters), ...linesFrom(requested, budgets)];
}

/** One that is due and has not started can start now at the earliest. */
function dueAt({ from }: StartQueue, { departAt }: ForecastStart): Instant {
  return later(departAt, from);
}

function isPlanned(start: ForecastStart): start is PlannedDeparture {
  return "deadlineAt" in start;
}

/** The queue with the earliest start; at the same instant the one that was planned first. */
function soonest(queues: readonly StartQueue[]): StartQueue | undefined {
  let best: StartQueue | undefined;
  for (const queue of queues) {
    if (queue.next >= queue.departures.length) continue;
    if (
      best === undefined ||
      queue.at < best.at ||
      (queue.at === best.at && isEarlier(queue, best))
    ) {
      best = queue;
    }
  }
  return best;
}

function isEarlier(a: StartQueue, b: StartQueue): boolean {
  return (a.departures[a.next]?.departAt ?? 0) < (b.departures[b.next]?.departAt ?? 0);
}

/** Starts a departure at the queue's instant, or advances the queue to the next possible one. */
function tryStart(queue: StartQueue, departure: ForecastStart): "Starts" | "Late" | "Waits" {
  // A node that was overdue when first planned is never forced.
  const isBound = isPlanned(departure) && departure.reason !== "Overdue";
  if (isBound && queue.at > departure.deadlineAt) return tryLateStart(queue, departure);
  const capacityFrom = capacityIn(queue, queue.meters);
  const isOnPlan = !isBound || capacityFrom === dueAt(queue, departure);
  // The queue's instant may be in a closed time, after a departure that its deadline forced.
  const startAt = isOnPlan ? capacityFrom : nextOpen(queue.open, capacityFrom);
  if (startAt <= queue.at) return "Starts";
  if (isBound && startAt > departure.deadlineAt) {
    if (queue.at === departure.deadlineAt) return tryLateStart(queue, departure);
    return waitUntil(queue, departure.deadlineAt);
  }
  return waitUntil(queue, startAt);
}

/**
 * From its deadline on, only budgets hold it. A queue of late departures that forms later may
 * override them sooner than this says.
 */
function tryLateStart(
  queue: StartQueue,
  { overridesBudgetAt }: PlannedDeparture,
): "Late" | "Waits" {
  const budgets = queue.meters.filter(({ waves }) => waves === undefined);
  const startAt = Math.min(capacityIn(queue, budgets), Math.max(queue.at, overridesBudgetAt));
  return startAt <= queue.at ? "Late" : waitUntil(queue, startAt);
}

function waitUntil(queue: StartQueue, at: number): "Waits" {
  queue.waiting = true;
  queue.at = at;
  return "Waits";
}

function capacityIn(queue: StartQueue, meters: readonly Meter[]): number {
  let latest = queue.at;
  for (const meter of meters) {
    const at = capacityAt(meter, queue.at);
    if (at > queue.at && !queue.waiting) meter.heldBack += 1;
    latest = Math.max(latest, at);
  }
  return latest;
}

/**
 * The limit that each tight budget would need for the plan to be kept as it is; waves have none.
 * The starts that are under way count as well: they are why a budget holds a departure back now.
 */
function tightBudgets(
  { plans, earlier }: ForecastStarts,
  meters: readonly Meter[],
): ReadonlyMap<string, readonly TightBudget[]> {
  const tight = new Map<string, Map<string, TightBudget>>();
  for (const meter of meters) {
    if (meter.heldBack === 0) continue;
    const { policy, title: budget } = meter;
    const titles = tight.get(policy) ?? new Map<string, TightBudget>();
    const before = titles.get(budget);
    const needed = neededBy(meter, { plans, earlier });
    const isMore = (needed?.value ?? 0) > (before?.needed?.value ?? 0);
    const isWaves = meter.waves !== undefined;
    titles.set(budget, { budget, isWaves, needed: isMore ? needed : before?.needed });
    tight.set(policy, titles);
  }
  return new Map([...tight].map(([policy, titles]) => [policy, [...titles.values()]]));
}

function neededBy(meter: Meter, question: ForecastStarts): NeededAmount | undefined {
  if (meter.waves !== undefined) return undefined;
  const most = peak(meter, question);
  // It holds back only what another budget has moved to a time when others leave.
  if (most <= meter.limit) return undefined;
  const { percentOf } = meter;
  if (percentOf === undefined) {
    return { value: most, unit: meter.durationMs === undefined ? "Nodes" : "PerHour" };
  }
  let percent = Math.floor((100 * most) / Math.max(1, percentOf));
  while (amountOf({ percent }, percentOf) < most) percent += 1;
  return percent > 100 ? undefined : { value: percent, unit: "Percent" };
}

/** How many starts count on the meter at once, at most, if every planned one is on time. */
function peak(meter: Meter, { plans, earlier }: ForecastStarts): number {
  const changes: { at: number; by: number }[] = [];
  const add = ({ policy, zone, at }: MeteredStart): void => {
    if (!counts(meter, { policy, zone, at })) return;
    changes.push({ at, by: 1 }, { at: at + durationOf(meter, policy), by: -1 });
  };
  for (const start of earlier) if (countsEarlier(meter, start)) add(start);
  for (const { policy, departures, requested } of plans) {
    for (const { zone, departAt } of [...departures, ...requested]) {
      add({ policy, zone, at: departAt });
    }
  }
  changes.sort((a, b) => a.at - b.at || a.by - b.by);
  let running = 0;
  let most = 0;
  for (const { by } of changes) {
    running += by;
    most = Math.max(most, running);
  }
  return most;
}
