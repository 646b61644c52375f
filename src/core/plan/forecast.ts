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
import { nextOpen, type OpenTime, openTime } from "../limits/open-time.ts";
import { type OpenHours, occurrences } from "../limits/windows.ts";
import type { Policy, Window } from "../policy/policy.ts";
import { type Span, spanIndexAt, subtractSpans } from "../time/span.ts";
import { type Instant, instant } from "../time/time.ts";
import type { Forecast, PlannedDeparture, TightBudget } from "./fleet-plan.ts";

interface ForecastInput {
  readonly policy: Policy;
  readonly departures: readonly PlannedDeparture[];
  readonly hours: OpenHours;
  readonly budgets: BudgetForecast;
}

/**
 * Whether one policy's plan can be kept. Infeasible is a node that has no allowed instant before
 * its deadline, that is overdue, that has missed its time and leaves past its deadline, or that the
 * budgets would hold back past it. `widenBySeconds` answers for the windows alone: a longer window
 * is no cure for a budget, so that what a budget would have to be is said apart, in `tight`.
 */
export function forecastPolicy(input: ForecastInput): Forecast {
  const { policy, departures, hours, budgets } = input;
  const { heldBackTo, pastDeadline } = budgets;
  const shut = departures.filter((one) => one.reason === "DeadlineBeatsWindow");
  const late = departures.filter((one) => one.reason !== "Spaced" || pastDeadline.has(one));
  const { widenBySeconds, helpless } = wideningFor(shut, { windows: policy.windows, hours });
  return {
    feasible: late.length === 0,
    late: late.map((one) => one.node.name),
    widenBySeconds,
    helpless,
    shut: shut.length,
    overdue: late.filter((one) => one.reason === "Overdue").length,
    missed: late.filter((one) => one.reason === "Missed").length,
    heldBack: heldBackTo.size === 0 ? 0 : departures.filter((one) => heldBackTo.has(one)).length,
    heldPastDeadline: late.filter((one) => pastDeadline.has(one)).length,
    tight: budgets.tight.get(policy.name) ?? [],
  };
}

/** A node without an allowed instant between these two, both included. */
interface ShutRange {
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
}

interface Widening {
  /** Whole seconds; 0 where there is nothing that longer windows would help. */
  readonly widenBySeconds: number;
  /** How many ranges no longer window helps: a Deny window or a hold covers them. */
  readonly helpless: number;
}

/**
 * The smallest number of whole seconds by which every opening of every Allow window would have to
 * end later for each of these ranges to have an allowed instant. Exact: an opening that is longer
 * reaches a stretch without Deny windows first at its beginning, and the opening that reaches it
 * first is the one that ends last among those begun by then.
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

/** Openings by their start, each ending as late as any that began no later. */
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
 * Infinity where no widening helps. Windows are half-open: to reach an instant is to end after it.
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

/** What the forecast needs of one policy's plan. */
export interface PlannedStarts extends MeteredFleet {
  /** In the order of time. */
  readonly departures: readonly PlannedDeparture[];
  /** Those that a person has asked for: they wait for budgets, and count in budgets and waves. */
  readonly requested: readonly RequestedStart[];
  readonly hours: OpenHours;
}

export interface RequestedStart {
  readonly departAt: Instant;
  readonly zone: string;
}

interface ForecastQuestion {
  readonly plans: readonly PlannedStarts[];
  /** Starts that have happened and may still count; one that has ended counts by the hour only. */
  readonly earlier: readonly EarlierStart[];
}

export interface EarlierStart extends MeteredStart {
  readonly state: "UnderWay" | "Ended";
  /** Not by a notice, which no wave counts. */
  readonly voluntary: boolean;
}

interface BudgetForecast {
  /** When each departure is expected to start, where that is not its planned instant. */
  readonly heldBackTo: ReadonlyMap<PlannedDeparture, Instant>;
  /** Departures that no budget had room for up to their deadline. */
  readonly pastDeadline: ReadonlySet<PlannedDeparture>;
  /** By policy: its budgets that hold starts back. */
  readonly tight: ReadonlyMap<string, readonly TightBudget[]>;
}

/** A departure that a person has asked for has no deadline, and waits for no window. */
type Start = PlannedDeparture | RequestedStart;

/**
 * The departures of one policy and zone, which wait for the same budgets: first come, first served.
 */
interface Line {
  readonly policy: Policy;
  readonly departures: readonly Start[];
  readonly zone: string;
  readonly open: OpenTime;
  readonly meters: readonly Meter[];
  readonly fed: readonly Meter[];
  next: number;
  at: number;
  /** Whether the one that is next has been held back before. */
  waiting: boolean;
}

/**
 * Plays the plan against the budgets: every departure starts at its planned instant or, where a
 * budget is spent, at the next allowed instant with room. Waves and windows hold it up to its
 * deadline, budgets up to the end of its lifetime. A departure is reckoned to keep its place in a
 * budget of nodes, and its wave waiting, for `drain.timeout`, the longest that its drain may take,
 * and to end well.
 */
export function forecastBudgets({ plans, earlier }: ForecastQuestion): BudgetForecast {
  const meters = plans.flatMap(metersOf);
  const heldBackTo = new Map<PlannedDeparture, Instant>();
  const pastDeadline = new Set<PlannedDeparture>();
  if (meters.length === 0) return { heldBackTo, pastDeadline, tight: new Map() };
  for (const start of earlier) {
    for (const meter of meters) {
      const isOver = start.state === "Ended" && meter.durationMs === undefined;
      const isOutside = meter.waves !== undefined && !start.voluntary;
      if (!isOver && !isOutside && counts(meter, start)) record(meter, start);
    }
  }
  const lines = plans.flatMap((plan) => linesOf(plan, meters));
  for (let line = soonest(lines); line !== undefined; line = soonest(lines)) {
    const departure = line.departures[line.next];
    if (departure === undefined) break;
    const turn = takeTurn(line, departure);
    if (turn === "Waits") continue;
    for (const meter of line.fed) record(meter, { ...line, at: line.at });
    if (isPlanned(departure)) {
      if (turn === "Late") pastDeadline.add(departure);
      if (line.at > departure.departAt) heldBackTo.set(departure, instant(line.at));
    }
    line.next += 1;
    line.waiting = false;
    line.at = Math.max(line.at, line.departures[line.next]?.departAt ?? 0);
  }
  return { heldBackTo, pastDeadline, tight: tightBudgets(plans, meters) };
}

function linesOf(plan: PlannedStarts, meters: readonly Meter[]): readonly Line[] {
  const { policy } = plan;
  const open = openTime(plan.hours.spans);
  const linesFrom = (starts: readonly Start[], limiting: readonly Meter[]): readonly Line[] =>
    [...Map.groupBy(starts, ({ zone }) => zone)].map(([zone, departures]) => {
      const start = { policy, zone, at: 0 };
      return {
        ...{ policy, zone, departures, open, next: 0, waiting: false },
        meters: limiting.filter((meter) => limits(meter, start)),
        fed: meters.filter((meter) => counts(meter, start)),
        at: departures[0]?.departAt ?? 0,
      };
    });
  // A person's request waits for no wave.
  const budgets = meters.filter(({ waves }) => waves === undefined);
  const requested = plan.requested.toSorted((a, b) => a.departAt - b.departAt);
  return [...linesFrom(plan.departures, meters), ...linesFrom(requested, budgets)];
}

function isPlanned(start: Start): start is PlannedDeparture {
  return "deadlineAt" in start;
}

/** The line whose turn it is; of two at one instant the one whose departure was planned first. */
function soonest(lines: readonly Line[]): Line | undefined {
  let best: Line | undefined;
  for (const line of lines) {
    if (line.next >= line.departures.length) continue;
    if (best === undefined || line.at < best.at || (line.at === best.at && isEarlier(line, best))) {
      best = line;
    }
  }
  return best;
}

function isEarlier(a: Line, b: Line): boolean {
  return (a.departures[a.next]?.departAt ?? 0) < (b.departures[b.next]?.departAt ?? 0);
}

/** Starts at the line's instant, or moves it on to where it might. */
function takeTurn(line: Line, departure: Start): "Starts" | "Late" | "Waits" {
  // What is planned past its deadline may leave after the last instant that the open hours know of.
  const isBound = isPlanned(departure) && departure.departAt <= departure.deadlineAt;
  if (isBound && line.at > departure.deadlineAt) return takeLateTurn(line, departure);
  const capacityFrom = capacityIn(line, line.meters);
  const isOnPlan = !isBound || capacityFrom === departure.departAt;
  // The line may stand where nothing is open, behind one that its deadline forced.
  const startAt = isOnPlan ? capacityFrom : nextOpen(line.open, capacityFrom);
  if (startAt <= line.at) return "Starts";
  if (isBound && startAt > departure.deadlineAt) {
    if (line.at === departure.deadlineAt) return takeLateTurn(line, departure);
    return waitUntil(line, departure.deadlineAt);
  }
  return waitUntil(line, startAt);
}

/** From its deadline on only budgets hold it, and those only as long as it lives. */
function takeLateTurn(line: Line, { endsAt }: PlannedDeparture): "Late" | "Waits" {
  const budgets = line.meters.filter(({ waves }) => waves === undefined);
  const startAt = Math.min(capacityIn(line, budgets), Math.max(line.at, endsAt));
  return startAt <= line.at ? "Late" : waitUntil(line, startAt);
}

function waitUntil(line: Line, at: number): "Waits" {
  line.waiting = true;
  line.at = at;
  return "Waits";
}

function capacityIn(line: Line, meters: readonly Meter[]): number {
  let latest = line.at;
  for (const meter of meters) {
    const at = capacityAt(meter, line.at);
    if (at > line.at && !line.waiting) meter.heldBack += 1;
    latest = Math.max(latest, at);
  }
  return latest;
}

/** With the number that a budget would need the plan could be kept as it is; waves have none. */
function tightBudgets(
  plans: readonly PlannedStarts[],
  meters: readonly Meter[],
): ReadonlyMap<string, readonly TightBudget[]> {
  const tight = new Map<string, Map<string, number | undefined>>();
  for (const meter of meters) {
    if (meter.heldBack === 0) continue;
    const titles = tight.get(meter.policy) ?? new Map<string, number | undefined>();
    const needed =
      meter.waves === undefined
        ? Math.max(titles.get(meter.title) ?? 0, peak(plans, meter))
        : undefined;
    tight.set(meter.policy, titles.set(meter.title, needed));
  }
  return new Map(
    [...tight].map(([policy, titles]) => [
      policy,
      [...titles].map(([budget, needed]) => ({ budget, needed })),
    ]),
  );
}

/** How many planned starts count on the meter at once, at most. */
function peak(plans: readonly PlannedStarts[], meter: Meter): number {
  const changes: { at: number; by: number }[] = [];
  for (const { policy, departures, requested } of plans) {
    const durationMs = durationOf(meter, policy);
    for (const { zone, departAt } of [...departures, ...requested]) {
      if (!counts(meter, { policy, zone, at: departAt })) continue;
      changes.push({ at: departAt, by: 1 }, { at: departAt + durationMs, by: -1 });
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
