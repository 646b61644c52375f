import type { FleetView } from "../contracts/fleet.ts";
import { openHours } from "../core/limits/windows.ts";
import type { FleetPlan, PolicyPlan } from "../core/plan/fleet-plan.ts";
import { planFleet } from "../core/plan/plan.ts";
import { explainForecast } from "../core/plan/plan-report.ts";
import type { BadPolicy } from "../core/policy/policy.ts";
import type { ReleaseAnswers } from "../core/policy/release-answer.ts";
import { subtractSpans } from "../core/time/span.ts";
import { hours, type Instant, instant, minus, plus } from "../core/time/time.ts";
import { boardRows } from "./board-row.ts";
import { withLaunchTimes } from "./launch-times.ts";
import { EndedDepartures } from "./outcome/ended-departures.ts";
import { pastDeparture } from "./outcome/past-departure.ts";
import type { BoardPicture, ClosedSpan, FleetState, PolicyCard } from "./stream.ts";
import { plannedWaves } from "./wave-spans.ts";

/** What the timeline can show at most. */
const behindMs = hours(12);
const aheadMs = hours(48);

export interface PictureFacts {
  readonly now: Instant;
  readonly state: Omit<FleetState, "days">;
  readonly releaseAnswers?: ReleaseAnswers | undefined;
  /** Those that are remembered from before; what has ended since is added to them. */
  readonly ended?: EndedDepartures | undefined;
}

/**
 * All that the board shows of a fleet, at one instant: the rows with the same plan as the
 * controller acts upon, where each policy stands, and what came of those that have left.
 */
export function boardPicture(seen: FleetView, facts: PictureFacts): BoardPicture {
  const view = { ...seen, nodes: withLaunchTimes(seen) };
  const plan = planFleet({ ...view, at: facts.now, releaseAnswers: facts.releaseAnswers });
  const { ended = new EndedDepartures() } = facts;
  for (const one of view.departures) {
    const past = pastDeparture(one);
    if (past !== undefined) ended.add(past);
  }
  return {
    fleet: { ...facts.state, days: ended.days() },
    rows: boardRows(view, plan),
    past: ended.newest(),
    policies: policyCards(plan, facts.now),
  };
}

export function policyCards(plan: FleetPlan, now: Instant): readonly PolicyCard[] {
  return [
    ...plan.policies.map((one) => policyCard(one, now)),
    ...plan.bad.map(({ policy, nodes }) => badCard(policy, nodes)),
  ];
}

function policyCard(plan: PolicyPlan, now: Instant): PolicyCard {
  const { policy, matched, spacing, forecast } = plan;
  return {
    ...{ id: policy.name, name: policy.name, matched, problem: null },
    isPaused: policy.paused,
    isDryRun: policy.dryRun,
    wantedMs: spacing.wantedMs,
    reachedMs: spacing.reachedMs,
    bestMs: spacing.bestMs,
    isFeasible: forecast.feasible,
    forecast: explainForecast(plan),
    freezeUntil: policy.gates.freezeUntil ?? null,
    shut: shutSpans(plan, now),
    waves: plannedWaves(plan).spans,
  };
}

/** In whole hours, so that the spans stay as they are until an hour has passed. */
function shutSpans({ policy }: PolicyPlan, now: Instant): readonly ClosedSpan[] {
  const hourMs = hours(1);
  const thisHour = instant(Math.floor(now / hourMs) * hourMs);
  const bounds = { startAt: minus(thisHour, behindMs), endAt: plus(thisHour, aheadMs) };
  const shut = subtractSpans([bounds], openHours(policy.windows, bounds).spans);
  const { freezeUntil } = policy.gates;
  return [
    ...shut.map((span) => ({ ...span, why: "Window" as const })),
    ...(freezeUntil === undefined || freezeUntil <= bounds.startAt
      ? []
      : [{ startAt: thisHour, endAt: freezeUntil, why: "Freeze" as const }]),
  ];
}

function badCard({ name, problem }: BadPolicy, matched: number): PolicyCard {
  return {
    ...{ id: name, name, matched, problem, isPaused: false, isDryRun: false },
    ...{ wantedMs: null, reachedMs: null, bestMs: null, isFeasible: false },
    ...{ forecast: "", freezeUntil: null, shut: [], waves: [] },
  };
}
