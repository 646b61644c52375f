import type { OpenHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import type { BudgetForecast } from "./budget-forecast.ts";
import type { Forecast, PlannedDeparture } from "./fleet-plan.ts";
import { wideningFor } from "./widening.ts";

export interface ForecastInput {
  readonly policy: Policy;
  readonly departures: readonly PlannedDeparture[];
  readonly hours: OpenHours;
  readonly budgets: BudgetForecast;
}

/**
 * Whether one policy's plan can be kept. Infeasible is a node that has no allowed instant before its
 * deadline, that is overdue, that has missed its time and leaves past its deadline, or that the budgets
 * would hold back past it. `widenBySeconds` answers for the windows alone: a longer window is no cure
 * for a budget, so that what a budget would have to be is said apart, in `tight`.
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
