import { type OpenHours, occurrences } from "../limits/windows.ts";
import type { Policy, Window } from "../policy/policy.ts";
import { type Span, spanIndexAt, subtractSpans } from "../time/span.ts";
import { type Instant, instant } from "../time/time.ts";
import type { BudgetForecast } from "./budget-forecast.ts";
import type { Forecast, PlannedDeparture } from "./fleet-plan.ts";

export interface ForecastInput {
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
export interface ShutRange {
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
}

export interface Widening {
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
