import type { NodeFacts } from "../cluster/node.ts";
import type { NewestStart } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import type { NodeRest } from "../departure/node-rest.ts";
import type { WaveStanding } from "../limits/budget.ts";
import type { FleetHealth } from "../limits/fleet-health.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleaseAnswers, ReleaseStanding } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import type { Instant, Millis } from "../time/time.ts";
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
  /** `Snapshot.unheard`. */
  readonly unheard?: string | undefined;
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
  /** How many are held back now, by `spec.hold` of their Departures, or past their instants. */
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
  /** Until when a freeze holds it past `departAt`: its end, or the deadline if that is first. */
  readonly frozenUntil?: Instant | undefined;
  /** What allows no instant before its deadline, if that is more than closed windows. */
  readonly barrier?: Barrier | undefined;
}

/** A hold that ends, or the rest after a departure that was undone. */
export interface Barrier {
  readonly by: "Hold" | "Rest";
  readonly untilAt: Instant;
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
  /** Nodes whose hold ends after their deadline. */
  readonly onHold: number;
  /** Other nodes without an allowed instant. */
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
  /** What the record of its hold names. */
  readonly heldBy: Reason | undefined;
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
