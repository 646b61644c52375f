import type { FleetView } from "../contracts/cluster.ts";
import type { KubeObject } from "../contracts/kube-api.ts";
import { type Departure, isNoticed, isUnderWay } from "../core/departure/departure.ts";
import { withLaunchTimes } from "../core/departure/launch-time.ts";
import { openHours } from "../core/limits/windows.ts";
import type { FleetPlan, PlanInput, PolicyPlan } from "../core/plan/fleet-plan.ts";
import { fleetHeadline } from "../core/plan/headline.ts";
import { planFleet } from "../core/plan/plan.ts";
import { blockedNodes, policyStanding } from "../core/plan/policy-standing.ts";
import { asTheyStand } from "../core/plan/present-hold.ts";
import type { BadPolicy } from "../core/policy/policy.ts";
import type { ReleaseAnswer, ReleaseAnswers } from "../core/policy/release-answer.ts";
import { hours, type Instant, instant, minus, plus, subtractSpans } from "../core/time/time.ts";
import { boardRows } from "./board-row.ts";
import { EndedDepartures, pastDeparture } from "./outcome/ended-departures.ts";
import {
  type BoardPicture,
  type BoardRow,
  type ClosedSpan,
  type FleetFacts,
  type PolicyCard,
  plannedWaves,
  unreadLists,
} from "./stream.ts";

/** The longest span that the timeline can show. */
const behindMs = hours(12);
const aheadMs = hours(48);

export interface PictureFacts {
  readonly now: Instant;
  readonly state: FleetFacts;
  readonly releaseAnswers?: ReleaseAnswers | undefined;
  /** The departures of the history; those that have ended since are added to them. */
  readonly ended?: EndedDepartures | undefined;
}

/**
 * Everything that the board shows of a fleet at one instant: the rows with the same plan that the
 * controller acts on, the state of each policy, and the outcomes of the departures.
 */
export function boardPicture(seen: FleetView, facts: PictureFacts): BoardPicture {
  const view = { ...seen, nodes: withLaunchTimes(seen.nodes, seen.departures) };
  const plan = planFleet({ ...view, at: facts.now, releaseAnswers: facts.releaseAnswers });
  const { ended = new EndedDepartures() } = facts;
  for (const one of view.departures) {
    const past = pastDeparture(one);
    if (past !== undefined) ended.add(past);
  }
  const { operation, ...state } = facts.state;
  const unread = unreadLists(state.missing);
  const rows = boardRows({ ...view, departures: asTheyStand(view.departures, plan) }, plan);
  const headline = fleetHeadline({ ...view, plan, operation, unread });
  return {
    fleet: { ...state, days: ended.days(), headline },
    rows: unread.includes("policies") ? rows.map(withoutPolicies) : rows,
    past: ended.newest(),
    policies: policyCards(plan, facts.now),
  };
}

/** Which policy selects the node is unknown. */
function withoutPolicies(row: BoardRow): BoardRow {
  if (row.reason !== "NoPolicy") return row;
  return { ...row, reason: "PolicyInvalid", explain: { says: "headline.PoliciesUnread" } };
}

function policyCards(plan: FleetPlan, now: Instant): readonly PolicyCard[] {
  return [
    ...plan.policies.map((one) => policyCard(one, { plan, now })),
    ...plan.bad.map(({ policy, nodes }) => badCard(policy, nodes)),
  ];
}

function policyCard(
  one: PolicyPlan,
  { plan, now }: { readonly plan: FleetPlan; readonly now: Instant },
): PolicyCard {
  const { policy, matched, spacing } = one;
  const { reason, explain } = policyStanding(one, blockedNodes(plan, policy.name));
  return {
    ...{ id: policy.name, name: policy.name, matched, problem: null },
    standing: reason,
    isDryRun: policy.dryRun,
    wantedMs: spacing.wantedMs,
    reachedMs: spacing.reachedMs,
    bestMs: spacing.bestMs,
    forecast: explain,
    held: one.held,
    freezeUntil: policy.gates.freezeUntil ?? null,
    shut: shutSpans(one, now),
    waves: plannedWaves(one).spans,
  };
}

/** In whole hours, so that the spans stay the same for an hour. */
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
    ...{ id: name, name, matched, problem, standing: "PolicyInvalid", isDryRun: false },
    ...{ wantedMs: null, reachedMs: null, bestMs: null },
    ...{ forecast: "", held: 0, freezeUntil: null, shut: [], waves: [] },
  };
}

/** Everything that a page needs to compute a plan itself: the response of `/api/what-if`. */
export interface WhatIfFacts extends Pick<FleetView, "nodes" | "departures"> {
  readonly at: Instant;
  /** As they are written in the cluster, so that people read and edit their own text. */
  readonly policies: readonly PolicyText[];
  readonly releaseAnswers: readonly (readonly [uid: string, answer: ReleaseAnswer])[];
}

export interface PolicyText {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DeparturePolicy";
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

interface FactSources {
  readonly view: Pick<FleetView, "nodes" | "departures">;
  /** The DeparturePolicy objects of the cluster. */
  readonly policies: readonly KubeObject[];
  readonly releaseAnswers: ReleaseAnswers;
  readonly at: Instant;
}

export function whatIfFacts({ view, policies, releaseAnswers, at }: FactSources): WhatIfFacts {
  return {
    at,
    nodes: view.nodes,
    departures: view.departures.map(withoutActions),
    policies: policies.map(({ metadata, spec = {} }) => ({
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: metadata?.name ?? "" },
      spec,
    })),
    releaseAnswers: [...releaseAnswers],
  };
}

/** No plan reads the actions, and the data for undoing them is not shown to anybody. */
function withoutActions({ status, ...departure }: Departure): Departure {
  const { actions: _, ...rest } = status;
  return { ...departure, status: rest };
}

/** What the timeline would show with other policies. */
export interface SupposedPicture {
  readonly plan: FleetPlan;
  readonly rows: readonly BoardRow[];
  readonly policies: readonly PolicyCard[];
}

/**
 * The plan that these policies would have now. A planned departure that has not started is shown at
 * the plan's instant, not at the one that its Departure still has.
 */
export function supposedPicture(
  facts: WhatIfFacts,
  policies: Pick<PlanInput, "policies" | "badPolicies">,
): SupposedPicture {
  const { departures, at } = facts;
  const nodes = withLaunchTimes(facts.nodes, departures);
  const releaseAnswers = new Map(facts.releaseAnswers);
  const plan = planFleet({ ...policies, nodes, departures, releaseAnswers, at });
  const settled = departures.filter(
    (one) => one.cause !== "Planned" || isUnderWay(one) || isNoticed(one),
  );
  return {
    plan,
    rows: boardRows({ ...policies, nodes, departures: settled }, plan),
    policies: policyCards(plan, at),
  };
}
