import { explainWaves } from "../limits/budget.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReleaseStanding } from "../policy/release-answer.ts";
import type { Sentence } from "../reason/english.ts";
import { firstNames } from "../reason/first-names.ts";
import { formatRounded, type Instant, seconds } from "../time/time.ts";
import type { Forecast, NeededAmount, PolicyPlan } from "./fleet-plan.ts";

/** Explains whether the plan of a policy can be kept, and if not, what would help. */
export function explainForecast({
  policy,
  spacing,
  forecast,
  release,
  waves,
  departures,
  held,
}: PolicyPlan): readonly Sentence[] {
  const parts = [...lateParts(forecast, policy), ...budgetParts(forecast)];
  // What a freeze or budgets hold is told as part of that.
  const frozen = departures.filter(({ frozenUntil }) => frozenUntil !== undefined).length;
  const isTold = held <= frozen + heldByBudgets(forecast);
  if (!isTold && !forecast.feasible) parts.unshift({ says: "fleet.HeldBack", held });
  const { reachedMs, wantedMs } = spacing;
  if (reachedMs !== null && wantedMs !== null && reachedMs < wantedMs) {
    const isTight = !isOfDeadlines(reachedMs, departures);
    // A window that ends a moment before a whole number of gaps shortens each by less than that.
    if (isTight && formatRounded(reachedMs) !== formatRounded(wantedMs)) {
      parts.push({ says: "fleet.CloseTogether", reachedMs, wantedMs });
    }
  }
  const { freezeUntil } = policy.gates;
  if (freezeUntil !== undefined) {
    const told = freezeParts(departures, { until: freezeUntil, isDryRun: policy.dryRun });
    parts.push(...told);
  }
  if (waves !== undefined && waves.state !== "Passed") parts.push(explainWaves(waves));
  const verdict = policy.dryRun
    ? explainDryRun(forecast, departures.length)
    : areWavesHalted({ waves }) && forecast.feasible && departures.length > 0
      ? ({ says: "fleet.Halted", departures: departures.length } as const)
      : explainVerdict(forecast, { departures: departures.length, held, isTold });
  if (release === undefined) return [verdict, ...parts];
  const late = forecast.feasible ? [] : [verdict];
  return [explainRelease(release, departures.length), ...late, ...parts];
}

/** Whether a failed departure halts those to come until a person continues the waves. */
export function areWavesHalted({ waves }: Pick<PolicyPlan, "waves">): boolean {
  return waves?.state === "Halted";
}

/** Whether a gap is found only between nodes that leave at their deadlines, wherever these are. */
function isOfDeadlines(gapMs: number, planned: PolicyPlan["departures"]): boolean {
  return planned.every((one, place) => {
    const last = planned[place - 1];
    if (last === undefined || one.departAt - last.departAt > gapMs) return true;
    return [last, one].every(({ reason }) => reason === "DeadlineBeatsWindow");
  });
}

/** A deadline overrides a freeze; departures that were overdue from the start wait for its end. */
function freezeParts(
  planned: PolicyPlan["departures"],
  { until, isDryRun }: { readonly until: Instant; readonly isDryRun: boolean },
): readonly Sentence[] {
  const due = planned.filter(({ frozenUntil }) => frozenUntil !== undefined);
  const forced = due.filter(({ frozenUntil }) => frozenUntil !== until);
  const departures = forced.length;
  const waiting = due.length - departures;
  const names = firstNames(forced.map(({ node }) => node.name));
  const endsLate = isDryRun ? "fleet.FreezeWouldEndLate" : "fleet.FreezeEndsLate";
  return [
    ...(waiting > 0 ? [{ says: "fleet.FreezeHolds", until, departures: waiting } as const] : []),
    ...(departures > 0 ? [{ says: endsLate, until, departures, ...names } as const] : []),
  ];
}

/** Departures that are held back are not on schedule, even if they can still leave in time. */
function explainVerdict(
  { feasible, late }: Forecast,
  about: { readonly departures: number; readonly held: number; readonly isTold: boolean },
): Sentence {
  const { departures, held, isTold } = about;
  if (!feasible) {
    const some = late.length;
    return some === departures
      ? { says: "fleet.AllLate", departures }
      : { says: "fleet.SomeLate", some, departures };
  }
  if (departures === 0) return { says: "fleet.NonePlanned" };
  if (held === departures) return { says: "fleet.AllHeldBack", departures };
  if (held === 0) return { says: "fleet.AllOnSchedule", departures };
  const some = departures - held;
  return { says: "fleet.SomeOnSchedule", some, departures, held: isTold ? undefined : held };
}

/** A dry run makes no promise about its instants. */
function explainDryRun({ feasible, late }: Forecast, departures: number): Sentence {
  if (departures === 0) return { says: "fleet.DryRunNone" };
  if (feasible) return { says: "fleet.DryRunInTime", departures };
  const some = late.length;
  return some === departures
    ? { says: "fleet.DryRunAllLate", departures }
    : { says: "fleet.DryRunSomeLate", some, departures };
}

/** Explains which departures of a policy cannot start. */
export function explainRelease({ nodes, detail }: ReleaseStanding, departures: number): Sentence {
  if (nodes.length === 0) return { says: "fleet.Found", detail };
  if (nodes.length === departures) return { says: "fleet.NoneCanStart", departures, detail };
  const some = { some: nodes.length, departures, ...firstNames(nodes) };
  return { says: "fleet.SomeCannotStart", ...some, detail };
}

/** Without windows, it is the rest after a departure that was undone which leaves no time. */
function lateParts(forecast: Forecast, { windows }: Policy): Sentence[] {
  const { onHold, shut, helpless, missed, overdue, expiring, widenBySeconds } = forecast;
  const parts: Sentence[] = [];
  if (onHold > 0) parts.push({ says: "fleet.OnHold", nodes: onHold });
  const noTime = windows.length === 0 ? "fleet.NoAllowedTime" : "fleet.NoWindow";
  if (shut > 0) parts.push({ says: noTime, nodes: shut });
  if (widenBySeconds > 0) parts.push({ says: "fleet.Widen", byMs: seconds(widenBySeconds) });
  if (helpless > 0 && windows.length > 0) parts.push({ says: "fleet.Helpless", shut, helpless });
  if (missed > 0) parts.push({ says: "fleet.Missed", nodes: missed });
  if (overdue > 0) parts.push({ says: "fleet.Overdue", nodes: overdue });
  if (expiring > 0) parts.push({ says: "fleet.Expiring", overdue, expiring });
  return parts;
}

function cureOf({ value, unit }: NeededAmount): Sentence {
  switch (unit) {
    case "Nodes":
      return { says: "limit.CureNodes", nodes: value };
    case "Percent":
      return { says: "limit.CurePercent", percent: value };
    case "PerHour":
      return { says: "limit.CurePerHour", perHour: value };
  }
}

function heldByBudgets({ heldBack, heldPastDeadline }: Forecast): number {
  return Math.max(heldBack, heldPastDeadline);
}

function budgetParts(forecast: Forecast): readonly Sentence[] {
  const { heldPastDeadline: past, tight } = forecast;
  const departures = heldByBudgets(forecast);
  if (departures === 0) return [];
  const waves = tight.filter(({ isWaves }) => isWaves).length;
  const some = waves === tight.length ? "limit.Waves" : "limit.BudgetsAndWaves";
  const who: Sentence = { says: waves === 0 ? "limit.Budgets" : some };
  const cures = tight.map(({ budget, needed }) =>
    needed === undefined ? budget : [budget, cureOf(needed)],
  );
  if (past === departures) return [{ says: "fleet.HeldPastDeadline", who, departures, cures }];
  return [
    { says: "fleet.HeldByLimits", who, departures, past: past > 0 ? past : undefined, cures },
  ];
}
