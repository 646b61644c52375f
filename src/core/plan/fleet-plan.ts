import type { NodeFacts } from "../cluster/node.ts";
import type { Departure } from "../departure/departure.ts";
import type { WaveStanding } from "../limits/wave.ts";
import type { BadPolicy, Policy } from "../policy/policy.ts";
import type { ReleaseAnswers, ReleaseStanding } from "../policy/release-answer.ts";
import type { Reason } from "../reason/reason.ts";
import type { Instant, Millis } from "../time/time.ts";

/** What a plan is made of. Without departures it is the plan of a first day. */
export interface PlanInput {
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  readonly nodes: readonly NodeFacts[];
  /** Live ones are kept as they are where the goal allows; past ones say when a node last left. */
  readonly departures: readonly Departure[];
  /** Absent: whether the machines can be released is not known. */
  readonly releaseAnswers?: ReleaseAnswers | undefined;
  readonly at: Instant;
}

export interface FleetPlan {
  readonly at: Instant;
  /** By name. */
  readonly policies: readonly PolicyPlan[];
  /** Every node without a planned departure, by name. */
  readonly notPlanned: readonly NotPlanned[];
  /**
   * Policies that cannot be read, by name, and how many nodes each of them keeps where they are.
   */
  readonly bad: readonly { readonly policy: BadPolicy; readonly nodes: number }[];
  /** Policies that won by their name alone. */
  readonly ties: readonly PolicyTie[];
}

export interface PolicyPlan {
  readonly policy: Policy;
  /** Nodes that fall under the policy, planned or not. */
  readonly matched: number;
  readonly spacing: PlanSpacing;
  readonly forecast: Forecast;
  /** Absent where nothing is known to stand in the way. */
  readonly release?: ReleaseStanding | undefined;
  /** Absent where the policy has none. */
  readonly waves?: WaveStanding | undefined;
  /** By `departAt`, then by name. */
  readonly departures: readonly PlannedDeparture[];
  /** How many departures that were planned before have another instant now. */
  readonly moved: number;
}

export interface PlanSpacing {
  /** `spacing.min` in Late; null in Even, which wants as much as there is. */
  readonly wantedMs: Millis | null;
  /** The smallest gap between neighbours in time, overdue ones too; null under two. */
  readonly reachedMs: Millis | null;
  /** The largest smallest gap that any plan could have, overdue nodes aside; null under two. */
  readonly bestMs: Millis | null;
}

/**
 * Where the launch time of a machine is known from; the Node object may be older than the machine.
 */
export type LaunchTimeSource = "Instance" | "Node";

export type PlannedReason = Extract<
  Reason,
  "Spaced" | "DeadlineBeatsWindow" | "Missed" | "Overdue"
>;

export interface PlannedDeparture {
  readonly node: NodeFacts;
  /** Empty where the node has none. */
  readonly zone: string;
  readonly bornAt: Instant;
  readonly bornFrom: LaunchTimeSource;
  readonly earliestAt: Instant;
  readonly deadlineAt: Instant;
  /** When the node's lifetime is over: what missed its time before the deadline has until then. */
  readonly endsAt: Instant;
  readonly departAt: Instant;
  /** When to begin: at `departAt`, or seconds before where a window would shut meanwhile. */
  readonly beginAt: Instant;
  /** The Allow window it leaves in; null without one. */
  readonly window: string | null;
  readonly reason: PlannedReason;
  /** Whether its time came a while ago and it has not begun: those on time go before it. */
  readonly isLate: boolean;
  /** The instant of the plan before, where this one is another. */
  readonly movedFrom?: Instant | undefined;
  /** When it is expected to start, where budgets or waves will hold it back past `departAt`. */
  readonly heldBackTo?: Instant | undefined;
}

export interface NotPlanned {
  readonly node: NodeFacts;
  /** The policy it falls under; null where there is none. */
  readonly policy: string | null;
  readonly reason: Reason;
  /** The subject of the reason: a rival, a mark, a policy, a providerID. */
  readonly detail?: string | undefined;
  /** The policy that cannot be read and might own the node, where that is the reason. */
  readonly blockedBy?: string | undefined;
}

export interface PolicyTie {
  readonly policy: string;
  readonly tiedWith: readonly string[];
  readonly nodes: number;
}

/** Whether the plan can be kept. A gap that is smaller than wanted does not make it infeasible. */
export interface Forecast {
  readonly feasible: boolean;
  /**
   * Names of the nodes without an allowed instant, overdue, past their deadline because they missed
   * their instant, or held back past it.
   */
  readonly late: readonly string[];
  /**
   * The smallest number of whole seconds by which every Allow window would have to end later for
   * each node to have an allowed instant. 0 where none lacks one, or where no such number exists: a
   * Deny window or a hold may be what stands in the way, and `helpless` counts those nodes.
   */
  readonly widenBySeconds: number;
  /** Nodes without an allowed instant. */
  readonly shut: number;
  /** Of these the ones that no longer Allow window helps. */
  readonly helpless: number;
  readonly overdue: number;
  /** Nodes that missed their instant and leave past their deadline. */
  readonly missed: number;
  /** Starts that budgets and waves will hold back, and how many of them past their deadline. */
  readonly heldBack: number;
  readonly heldPastDeadline: number;
  /**
   * The budgets and waves that hold starts back, and the number with which each would hold none.
   */
  readonly tight: readonly TightBudget[];
}

export interface TightBudget {
  /** As in `3 nodes of the policy`, `6 an hour`, `waves of 1, 3`. */
  readonly budget: string;
  /** Waves have no number with which they would hold none back. */
  readonly needed: number | undefined;
}
