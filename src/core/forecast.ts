import type { BudgetForecast } from "./budget-forecast.ts";
import type { Forecast, PlannedDeparture } from "./fleet-plan.ts";
import type { Policy } from "./policy.ts";
import { wideningFor } from "./widening.ts";
import type { OpenHours } from "./windows.ts";

export interface ForecastInput {
  readonly policy: Policy;
  readonly departures: readonly PlannedDeparture[];
  readonly hours: OpenHours;
  readonly budgets: BudgetForecast;
}

/**
 * Whether one policy's plan can be kept. Infeasible is a node that has no allowed instant before its
 * deadline, that is overdue, or that the budgets would hold back past its deadline. `widenBySeconds`
 * answers for the windows alone: a longer window is no cure for a budget, so that what a budget would
 * have to be is said apart, in `tight`.
 */
export function forecastPolicy(input: ForecastInput): Forecast {
  const { policy, departures, hours, budgets } = input;
  const shut = departures.filter((one) => one.reason === "DeadlineBeatsWindow");
  const overdue = departures.filter((one) => one.reason === "Overdue");
  const held = departures.filter((one) => budgets.heldBackTo.has(one));
  const forced = departures.filter((one) => budgets.pastDeadline.has(one));
  const late = new Set([...shut, ...overdue, ...forced].map(nameOf));
  const { widenBySeconds, helpless } = wideningFor(shut, { windows: policy.windows, hours });
  return {
    feasible: late.size === 0,
    late: late.size === 0 ? [] : departures.map(nameOf).filter((name) => late.has(name)),
    widenBySeconds,
    helpless,
    shut: shut.length,
    overdue: overdue.length,
    heldBack: held.length,
    heldPastDeadline: forced.length,
    tight: budgets.tight.get(policy.name) ?? [],
  };
}

function nameOf(departure: PlannedDeparture): string {
  return departure.node.name;
}
