import { explainWaves } from "../limits/budget.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReleaseStanding } from "../policy/release-answer.ts";
import { capitalized, counted, isOrAre, someOf } from "../reason/counted.ts";
import { formatInstant, formatRounded, type Instant, seconds } from "../time/time.ts";
import type { Forecast, NeededAmount, PolicyPlan } from "./fleet-plan.ts";

/**
 * Explains in one sentence whether the plan of a policy can be kept, and if not, what would help.
 */
export function explainForecast({
  policy,
  spacing,
  forecast,
  release,
  waves,
  departures,
  held,
}: PolicyPlan): string {
  const parts = [...lateParts(forecast, policy), ...budgetParts(forecast)];
  // What a freeze or budgets hold is told as part of that.
  const frozen = departures.filter(({ frozenUntil }) => frozenUntil !== undefined).length;
  const isTold = held <= frozen + heldByBudgets(forecast);
  if (!isTold && !forecast.feasible)
    parts.unshift(`${counted(held, "departure")} ${isOrAre(held)} held back`);
  const { reachedMs, wantedMs } = spacing;
  if (reachedMs !== null && wantedMs !== null && reachedMs < wantedMs) {
    const [reached, wanted] = [formatRounded(reachedMs), formatRounded(wantedMs)];
    // A window that ends a moment before a whole number of gaps shortens each by less than that.
    if (reached !== wanted) {
      const gaps = `${reached} instead of ${wanted}`;
      parts.push(`departures are at least ${gaps} apart, because there is no time for more`);
    }
  }
  const { freezeUntil } = policy.gates;
  if (freezeUntil !== undefined) parts.push(...freezeParts(departures, freezeUntil));
  if (waves !== undefined && waves.state !== "Passed") parts.push(explainWaves(waves));
  const verdict = policy.dryRun
    ? explainDryRun(forecast, departures.length)
    : areWavesHalted({ waves }) && forecast.feasible && departures.length > 0
      ? explainHalted(departures.length)
      : explainVerdict(forecast, { planned: departures.length, held, isTold });
  if (release === undefined) return [verdict, ...parts].join("; ");
  const late = forecast.feasible ? [] : [verdict];
  return [explainRelease(release, departures.length), ...late, ...parts].join("; ");
}

/** Whether a failed departure halts those to come until a person continues the waves. */
export function areWavesHalted({ waves }: Pick<PolicyPlan, "waves">): boolean {
  return waves?.state === "Halted";
}

function explainHalted(planned: number): string {
  return planned === 1
    ? "The departure does not start before its deadline"
    : "No departure starts before its deadline";
}

/** A deadline overrides a freeze; departures that were overdue from the start wait for its end. */
function freezeParts(departures: PolicyPlan["departures"], freezeUntil: Instant): string[] {
  const due = departures.filter(({ departAt }) => departAt < freezeUntil);
  const forced = due.filter(
    ({ deadlineAt, reason }) => reason !== "Overdue" && deadlineAt < freezeUntil,
  );
  const freeze = `the freeze until ${formatInstant(freezeUntil)}`;
  const parts: string[] = [];
  const waiting = due.length - forced.length;
  if (waiting > 0) parts.push(`${freeze} holds back ${counted(waiting, "departure")}`);
  if (forced.length > 0) {
    const which = firstNames(forced.map(({ node }) => node.name));
    const whose = `${counted(forced.length, "departure")} (${which})`;
    const then = forced.length === 1 ? "leaves at its deadline" : "leave at their deadlines";
    parts.push(`${freeze} ends after the deadlines of ${whose}, which ${then}`);
  }
  return parts;
}

/** Departures that are held back are not on schedule, even if they can still leave in time. */
function explainVerdict(
  { feasible, late }: Forecast,
  {
    planned,
    held,
    isTold,
  }: { readonly planned: number; readonly held: number; readonly isTold: boolean },
): string {
  if (!feasible) return `${partText(late.length, planned)} late`;
  if (planned === 0) return "No departures are planned";
  if (held === planned) return `${partText(held, planned)} held back`;
  const onSchedule = `${partText(planned - held, planned)} on schedule`;
  return isTold
    ? onSchedule
    : `${onSchedule}, ${counted(held, "departure")} ${isOrAre(held)} held back`;
}

/** A dry run makes no promise about its instants. */
function explainDryRun({ feasible, late }: Forecast, planned: number): string {
  if (planned === 0) return "Dry run: no departures are planned";
  return feasible
    ? `Dry run: ${counted(planned, "departure")} would be on schedule, and no node leaves`
    : `Dry run: ${someOf(late.length, planned, "departure")} would be late, and no node leaves`;
}

/** `Both departures are`, `1 of 12 departures is`. */
function partText(some: number, all: number): string {
  return `${capitalized(someOf(some, all, "departure"))} ${isOrAre(some)}`;
}

/** How many nodes with the same problem are named. */
const namedNodes = 3;

/**
 * Explains which departures of a policy cannot start, as a part of a sentence.
 */
export function explainRelease({ nodes, detail }: ReleaseStanding, planned: number): string {
  if (nodes.length === 0) return `the controller found: ${detail}`;
  if (nodes.length === planned) {
    const none = planned === 2 ? "Neither departure" : `None of ${planned} departures`;
    return `${planned === 1 ? "The only departure cannot" : `${none} can`} start: ${detail}`;
  }
  const which = firstNames(nodes);
  return `${nodes.length} of ${counted(planned, "departure")} cannot start (${which}): ${detail}`;
}

function firstNames(nodes: readonly string[]): string {
  const named = nodes.slice(0, namedNodes);
  const more = nodes.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Without windows, it is the rest after a departure that was undone which leaves no time. */
function lateParts(forecast: Forecast, { windows }: Policy): string[] {
  const { onHold, shut, helpless, missed, overdue, expiring, widenBySeconds } = forecast;
  const parts: string[] = [];
  if (onHold > 0) {
    const ends = onHold === 1 ? "ends the hold" : "ends the holds";
    parts.push(`${counted(onHold, "node")} on hold until after the deadline, which ${ends}`);
  }
  const time = windows.length === 0 ? "allowed time" : "open window";
  if (shut > 0) parts.push(`${counted(shut, "node")} without an ${time} before the deadline`);
  if (widenBySeconds > 0) {
    const by = formatRounded(seconds(widenBySeconds));
    parts.push(`every Allow window would have to end ${by} later`);
  }
  if (helpless > 0 && windows.length > 0) {
    parts.push(`longer windows would not help ${shut === 1 ? "it" : `${helpless} of them`}`);
  }
  if (missed === 1) parts.push("1 node that missed its time leaves past the deadline");
  if (missed > 1) parts.push(`${missed} nodes that missed their time leave past the deadline`);
  if (overdue === 1) parts.push("1 node already past the deadline");
  if (overdue > 1) parts.push(`${overdue} nodes already past the deadline, leaving one by one`);
  if (expiring > 0) {
    const whose =
      overdue === 1 ? "it, unless it departs" : `${expiring} of them, unless they depart`;
    parts.push(`lifetime.max ends first for ${whose} by request`);
  }
  return parts;
}

function neededText({ value, unit }: NeededAmount): string {
  return { Nodes: counted(value, "node"), Percent: `${value} %`, PerHour: `${value} an hour` }[
    unit
  ];
}

function heldByBudgets({ heldBack, heldPastDeadline }: Forecast): number {
  return Math.max(heldBack, heldPastDeadline);
}

function budgetParts(forecast: Forecast): string[] {
  const { heldPastDeadline, tight } = forecast;
  const all = heldByBudgets(forecast);
  if (all === 0) return [];
  const some = heldPastDeadline > 0 ? `, ${heldPastDeadline} of them past the deadline` : "";
  const past = heldPastDeadline === all ? " past the deadline" : some;
  const waves = tight.filter(({ isWaves }) => isWaves).length;
  const who = waves === 0 ? "budgets" : waves === tight.length ? "waves" : "budgets and waves";
  const cures = tight.map(({ budget, needed }) =>
    needed === undefined ? budget : `${budget}; ${neededText(needed)} would hold none back`,
  );
  return [`${who} hold back ${counted(all, "departure")}${past}: ${cures.join(", ")}`];
}
