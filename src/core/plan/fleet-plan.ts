import { sliceOf } from "../cluster/gang.ts";
import {
  bornAt,
  holdOf,
  isKnownProviderId,
  type NodeFacts,
  rivalOf,
  zoneOf,
} from "../cluster/node.ts";
import { type DepartureIndex, keptInstant, type NewestStart } from "../departure/decision.ts";
import { type Departure, isUnderWay, isVoluntary } from "../departure/departure.ts";
import { hasJustLeft, type NodeRest, nodeRest, restsUntil } from "../departure/node-rest.ts";
import type { WaveStanding } from "../limits/budget.ts";
import type { FleetHealth } from "../limits/fleet-health.ts";
import {
  type BadPolicy,
  defaultNodeSelector,
  matchesNodeSelector,
  type Policy,
  selectPolicy,
} from "../policy/policy.ts";
import {
  isKarpenters,
  type ReleaseAnswers,
  type ReleaseStanding,
} from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import { earliest, formatInstant, type Instant, later, type Millis, plus } from "../time/time.ts";
import { lifetimeEnd } from "./lifetime-end.ts";
import type { NotPlanned } from "./not-planned.ts";

/** The input of a plan. Without departures it is an initial plan. */
export interface PlanInput {
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly nodes: readonly NodeFacts[];
  /** Live ones keep their instants if the goal allows; ended ones show the last starts. */
  readonly departures: readonly Departure[];
  /** Absent if it is unknown whether machines can be released. */
  readonly releaseAnswers?: ReleaseAnswers | undefined;
  readonly at: Instant;
}

export interface FleetPlan {
  readonly at: Instant;
  /** By name. */
  readonly policies: readonly PolicyPlan[];
  /** Every node without a planned departure, by name. */
  readonly notPlanned: readonly NotPlanned[];
  /** Unreadable policies by name, and how many nodes each of them keeps from being planned. */
  readonly bad: readonly { readonly policy: BadPolicy; readonly nodes: number }[];
  /** Policies that won a tie by name. */
  readonly ties: readonly PolicyTie[];
}

export interface PolicyPlan {
  readonly policy: Policy;
  /** The nodes that the policy applies to, planned or not. */
  readonly matched: number;
  /** The nodes that it selects although it applies to none, because other policies come first. */
  readonly outranked: number;
  readonly spacing: PlanSpacing;
  readonly forecast: Forecast;
  readonly health: FleetHealth;
  /** Absent if no problem is known. */
  readonly release?: ReleaseStanding | undefined;
  /** Absent if the policy has none. */
  readonly waves?: WaveStanding | undefined;
  /** By `departAt`, then by name. */
  readonly departures: readonly PlannedDeparture[];
  /** How many of them are held back now, or by `spec.hold` of their Departures. */
  readonly held: number;
  /** How many departures have another instant than in the previous plan. */
  readonly moved: number;
}

export interface PlanSpacing {
  /** `spacing.min` in Late; null in Even, which uses all the available time. */
  readonly wantedMs: Millis | null;
  /** The smallest gap between consecutive departures, with overdue ones; null below two. */
  readonly reachedMs: Millis | null;
  /** The largest minimum gap that any plan could have, without overdue nodes; null below two. */
  readonly bestMs: Millis | null;
}

/**
 * The source of a launch time; the Node object may be older than the machine.
 */
export type LaunchTimeSource = "Instance" | "Node";

export type PlannedReason = Extract<
  Reason,
  "Spaced" | "DeadlineBeatsWindow" | "Missed" | "Overdue"
>;

export interface PlannedDeparture {
  readonly node: NodeFacts;
  /** Empty if the node has none. */
  readonly zone: string;
  readonly bornAt: Instant;
  readonly bornFrom: LaunchTimeSource;
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
  /** The end of its lifetime, which limits departures that missed their instant. */
  readonly endsAt: Instant;
  /** From when it starts regardless of the budgets: `endsAt`, or earlier if several wait. */
  readonly overridesBudgetAt: Instant;
  readonly departAt: Instant;
  /**
   * When to start: at `departAt`, or a few seconds earlier if a window would close in the meantime.
   */
  readonly beginAt: Instant;
  /** The Allow window it leaves in; null without one. */
  readonly window: string | null;
  readonly reason: PlannedReason;
  /** Whether it has been due for a while: punctual departures take precedence. */
  readonly isLate: boolean;
  /** The instant of the previous plan, if it differs. */
  readonly movedFrom?: Instant | undefined;
  /** When it is expected to start, if budgets, waves or a queue hold it past `departAt`. */
  readonly heldBackTo?: Instant | undefined;
}

export interface PolicyTie {
  readonly policy: string;
  readonly tiedWith: readonly string[];
  readonly nodes: number;
}

/** Whether the plan can be kept. A gap below the wanted one does not make it infeasible. */
export interface Forecast {
  readonly feasible: boolean;
  /**
   * Names of the nodes that have no allowed instant, are overdue, leave past their deadline because
   * they missed their instant, or are held past it.
   */
  readonly late: readonly string[];
  /**
   * The smallest number of whole seconds by which every Allow window would have to end later for
   * each node to have an allowed instant. 0 if none lacks one, or if no such number exists because
   * a Deny window or a hold is the obstacle; `helpless` counts those nodes.
   */
  readonly widenBySeconds: number;
  /** Nodes without an allowed instant. */
  readonly shut: number;
  /** Those of them that no longer Allow window would help. */
  readonly helpless: number;
  readonly overdue: number;
  /** Overdue nodes that have not reached `lifetime.max`, but will before their instants. */
  readonly expiring: number;
  /** Nodes that missed their instant and leave past their deadline. */
  readonly missed: number;
  /** Starts that budgets and waves will hold, and how many of them past their deadline. */
  readonly heldBack: number;
  readonly heldPastDeadline: number;
  /**
   * The budgets and waves that hold starts, and the value with which none of them would.
   */
  readonly tight: readonly TightBudget[];
}

export interface TightBudget {
  /** For example `3 nodes of the policy`, `6 an hour`, `waves of 1, 3`. */
  readonly budget: string;
  readonly isWaves: boolean;
  /**
   * Undefined for waves, which no value would keep from holding starts, and for a budget that holds
   * starts only because of another one.
   */
  readonly needed: NeededAmount | undefined;
}

/** In the unit in which the budget is written. */
export interface NeededAmount {
  readonly value: number;
  readonly unit: "Nodes" | "Percent" | "PerHour";
}

/** A node to plan a departure for, and the instants between which it may start. */
export interface Candidate {
  readonly node: NodeFacts;
  readonly zone: string;
  readonly bornAt: Instant;
  readonly bornFrom: LaunchTimeSource;
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
  readonly endsAt: Instant;
  /** The node's rest after a rolled-back departure; undefined if there was none. */
  readonly rest: NodeRest | undefined;
  /** The instant of the previous plan. */
  readonly keptAt: Instant | undefined;
  /** The deadline in the previous plan, which may have had another `lifetime`. */
  readonly keptDeadlineAt: Instant | undefined;
  /** Whether it was first planned before its deadline. */
  readonly plannedInTime: boolean;
  readonly isHeld: boolean;
  /** Whether only the departures of others keep it: nothing holds it, or a budget or wave. */
  readonly waitsForOthers: boolean;
  /** Whether a person has set `spec.hold` of its departure, which may not be due yet. */
  readonly isHeldByPerson: boolean;
  /** Whether it is held by a budget that others use up. */
  readonly waitsForBudget: boolean;
}

/** The candidates of one policy. */
export interface PlanCandidates {
  readonly policy: Policy;
  readonly candidates: readonly Candidate[];
  readonly at: Instant;
  /** The last voluntary start of the policy. */
  readonly newestStart: NewestStart | undefined;
  /** When requested departures will start. */
  readonly requested: readonly Instant[];
}

export type Triage =
  | {
      readonly kind: "Candidate";
      readonly policy: Policy;
      readonly tiedWith: readonly string[];
      readonly candidate: Candidate;
    }
  | {
      readonly kind: "NotPlanned";
      /** The policy that selects the node, if there is one. */
      readonly policy: Policy | undefined;
      readonly tiedWith: readonly string[];
      readonly entry: NotPlanned;
      /** When a requested departure will start, if nobody holds it. */
      readonly requestedAt?: Instant | undefined;
    };

export interface TriageInput {
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly departures: DepartureIndex;
  readonly at: Instant;
}

type PlanRefusal = Pick<NotPlanned, "reason" | "detail" | "blockedBy">;

/** Decides whether a node gets a planned departure, by which policy, or why not. */
export function triage(node: NodeFacts, context: TriageInput): Triage {
  const choice = selectPolicy(node, context.policies);
  const policy = choice?.policy;
  const tiedWith = choice?.tiedWith ?? [];
  const departure = context.departures.of(node);
  const request = context.departures.requestOf(node);
  const former = context.departures.former.get(node.uid) ?? [];
  const leaving = leavingAlready(departure);
  const refused =
    leaving ?? refusal(node, policy, context.badPolicies) ?? resting(node, former, context.at);
  const born = bornAt(node);
  const end = policy && lifetimeEnd(node, policy);
  if (refused === undefined && policy && end && born !== undefined) {
    const { deadlineAt, endsAt } = end;
    const plannedAt = earliest(departure?.createdAt, request?.createdAt) ?? deadlineAt;
    const candidate: Candidate = {
      node,
      zone: zoneOf(node),
      bornAt: born,
      bornFrom: node.instanceBornAt === undefined ? "Node" : "Instance",
      earliestAt: earliestOf(node, later(context.at, plus(born, policy.lifetime.minMs))),
      ...{ deadlineAt, endsAt },
      rest: nodeRest(former),
      keptAt: keptInstant(departure, node),
      keptDeadlineAt: departure?.deadlineAt,
      plannedInTime: plannedAt <= deadlineAt,
      isHeld: departure?.status.phase === "Held" || departure?.isResting === true,
      isHeldByPerson: departure?.hold === true,
      waitsForBudget: isHeldBy(departure, "BudgetSpent"),
      waitsForOthers:
        departure?.status.phase !== "Held" ||
        isHeldBy(departure, "BudgetSpent") ||
        isHeldBy(departure, "WaveWait"),
    };
    const isFree = request === undefined || isTooLate(request, candidate, context.at);
    if (isFree) return { kind: "Candidate", policy, tiedWith, candidate };
  }
  const asked: PlanRefusal | undefined = request && { reason: "Requested", detail: request.name };
  const why: PlanRefusal = leaving ?? asked ?? refused ?? { reason: "NoLaunchTime" };
  const { reason, detail } = why;
  const blockedBy = refused?.blockedBy;
  const entry = { node, policy: policy?.name ?? null, reason, detail, blockedBy };
  const requestedAt = leaving === undefined ? startOf(request, context.at) : undefined;
  return { kind: "NotPlanned", policy, tiedWith, entry, requestedAt };
}

/**
 * Whether a person's request does not replace the plan, because the node might be lost: its instant
 * is past the deadline, or it has waited until then. A held request keeps the node like any other
 * hold by a person. If a request is due, an overdue node needs no plan, which would only wait in
 * the same way.
 */
function isTooLate(
  { hold, departAt, createdAt }: Departure,
  { deadlineAt, plannedInTime }: Candidate,
  at: Instant,
): boolean {
  const startAt = departAt ?? createdAt ?? at;
  if (hold || later(startAt, at) <= deadlineAt) return false;
  return startAt > at || plannedInTime;
}

function isHeldBy(departure: Departure | undefined, reason: Reason): boolean {
  return departure?.status.phase === "Held" && departure.status.reason === reason;
}

/**
 * The earliest start: the latest of now, launch time + min and the end of a hold. The deadline is
 * launch time + max - reserve. A hold can move the earliest start past the deadline; then the
 * deadline wins.
 */
function earliestOf(node: NodeFacts, grownAt: Instant): Instant {
  const hold = holdOf(node);
  return hold.kind === "Until" ? later(grownAt, hold.until) : grownAt;
}

/**
 * The start for the plan. A departure that waits for a budget stays at its planned instant, so that
 * it does not keep moving the others.
 */
function startOf(departure: Departure | undefined, at: Instant): Instant | undefined {
  if (departure === undefined || departure.hold) return undefined;
  return departure.departAt ?? departure.createdAt ?? at;
}

function leavingAlready(departure: Departure | undefined): PlanRefusal | undefined {
  if (departure === undefined) return undefined;
  if (!isVoluntary(departure.cause)) return { reason: "Noticed", detail: departure.name };
  if (departure.cause === "Manual") return { reason: "Requested", detail: departure.name };
  return isUnderWay(departure) ? { reason: "Started", detail: departure.name } : undefined;
}

function refusal(
  node: NodeFacts,
  policy: Policy | undefined,
  badPolicies: readonly BadPolicy[],
): PlanRefusal | undefined {
  for (const bad of badPolicies) {
    if (!mightOwn(node, { bad, policy })) continue;
    const detail = `${bad.name}: ${bad.problem}`;
    return { reason: "PolicyInvalid", detail, blockedBy: bad.name };
  }
  if (policy === undefined) return { reason: "NoPolicy" };
  if (node.deletionAt !== undefined) return { reason: "NodeTerminating" };
  const rival = rivalOf(node);
  if (rival !== undefined) return { reason: "LeftToOthers", detail: rival };
  if (policy.paused) return { reason: "PolicyPaused" };
  if (policy.lifetime.maxMs === undefined) return { reason: "NoLifetimeLimit" };
  const hold = holdOf(node);
  if (hold.kind === "Always") {
    return { reason: "OnHold", detail: hold.readable ? hold.mark : unreadable(node, hold.mark) };
  }
  const slice = policy.gates.gangWorkloads === "Hold" ? sliceOf(node) : undefined;
  if (slice !== undefined) return { reason: "GangWorkload", detail: slice };
  if (!node.providerID) return { reason: "NoProviderID" };
  if (!isKnownProviderId(node.providerID) && !isKarpenters(node)) {
    return { reason: "UnknownProvider", detail: node.providerID };
  }
  return bornAt(node) === undefined ? { reason: "NoLaunchTime" } : undefined;
}

function resting(
  node: NodeFacts,
  former: readonly Departure[],
  at: Instant,
): PlanRefusal | undefined {
  // A watch that lags shows a Node after it has gone with its machine.
  if (hasJustLeft(node, former, at)) return { reason: "NodeTerminating" };
  const until = restsUntil(node, former);
  if (until === undefined || until <= at) return undefined;
  return { reason: "MachineStayed", detail: formatInstant(until) };
}

function unreadable({ annotations }: NodeFacts, mark: string): string {
  return `${mark}, whose value ${JSON.stringify(annotations[mark])} cannot be read (expected "true", 4h or 2026-12-01T00:00:00Z)`;
}

/**
 * Whether an unreadable policy might select the node. Fails closed, because that policy might
 * protect it: the node is certainly not its own only if its selector is known and does not match,
 * or its weight is known and lower.
 */
function mightOwn(
  node: NodeFacts,
  { bad, policy }: { readonly bad: BadPolicy; readonly policy: Policy | undefined },
): boolean {
  if (policy !== undefined && bad.weight !== undefined) {
    if (bad.weight < policy.weight) return false;
    if (bad.weight === policy.weight && bad.name > policy.name) return false;
  }
  if (bad.nodeSelector !== undefined) return matchesNodeSelector(node, bad.nodeSelector);
  return policy !== undefined || matchesNodeSelector(node, defaultNodeSelector);
}
