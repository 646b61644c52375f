import type { LabelSelector, NodeSelector } from "../cluster/label-selector.ts";
import { type Instant, type Millis, minutes } from "../time/time.ts";
import type { Action } from "./action.ts";

/** A DeparturePolicy with its defaults filled in: what the planner and the drain read. */
export interface Policy {
  readonly name: string;
  readonly weight: number;
  /** Absent: the known Spot and preemptible labels (`defaultNodeSelector` in selector.ts). */
  readonly nodeSelector?: NodeSelector | undefined;
  readonly lifetime: Lifetime;
  readonly spacing: { readonly mode: "Late" | "Even"; readonly minMs: Millis };
  readonly windows: readonly Window[];
  readonly budgets: readonly Budget[];
  /** Absent: no waves, the budgets alone limit how many leave. */
  readonly waves?: Waves | undefined;
  readonly gates: Gates;
  readonly replacement: ReplacementRule;
  readonly drain: DrainRule;
  readonly onNotice: NoticeRule;
  readonly instance: InstanceRule;
  readonly actions: readonly Action[];
  readonly paused: boolean;
  readonly dryRun: boolean;
  /** `metadata.generation`, for `status.observedGeneration`; absent for a policy from a file. */
  readonly generation?: number | undefined;
  readonly uid?: string | undefined;
}

/**
 * A policy that could not be read. What is known of it narrows down the nodes that it might own;
 * without a selector that may be any node.
 */
export interface BadPolicy {
  readonly name: string;
  /** Which fields, expected with what was found there and what. */
  readonly problem: string;
  readonly weight?: number | undefined;
  readonly nodeSelector?: NodeSelector | undefined;
  readonly generation?: number | undefined;
  readonly uid?: string | undefined;
}

export interface Lifetime {
  readonly minMs: Millis;
  /** If not set, there are no planned departures, only notices. */
  readonly maxMs?: Millis | undefined;
  readonly reserveMs: Millis;
}

export type Weekday = "Mon" | "Tue" | "Wed" | "Thu" | "Fri" | "Sat" | "Sun";

interface WindowBase {
  readonly name: string;
  readonly type: "Allow" | "Deny";
  /** An IANA name such as `Asia/Tokyo`. */
  readonly timeZone: string;
}

/**
 * Every week on `days` from `start` to `end` (exclusive); over midnight it belongs to its start
 * day.
 */
export interface WeeklyWindow extends WindowBase {
  readonly kind: "Weekly";
  readonly days: readonly Weekday[];
  /** Minutes after local midnight, 0 to 1439. */
  readonly startMinute: number;
  /** Minutes after local midnight, 1 to 1440; at or under `startMinute` means the next day. */
  readonly endMinute: number;
}

/** From each instant of a five-field cron expression for `durationMs`. */
export interface CronWindow extends WindowBase {
  readonly kind: "Cron";
  readonly cron: string;
  readonly durationMs: Millis;
}

export type Window = WeeklyWindow | CronWindow;

export type BudgetScope = "Policy" | "Zone" | "Cluster";

export type Budget =
  | { readonly kind: "Nodes"; readonly scope: BudgetScope; readonly nodes: Amount }
  | { readonly kind: "PerHour"; readonly perHour: number };

/** How many departures each wave has, the canary first; the next begins when all have left well. */
export interface Waves {
  readonly sizes: readonly Amount[];
  /** What ended before does not count: the waves start again with the canary. */
  readonly restartedAt?: Instant | undefined;
}

/** A count, or a share of the matched nodes: rounded down, at least 1. */
export type Amount = { readonly count: number } | { readonly percent: number };

export interface Gates {
  readonly freezeUntil?: Instant | undefined;
  readonly alerts?: { readonly url: string; readonly matchers: readonly string[] } | undefined;
  readonly blockingPods: readonly LabelSelector[];
}

export interface ReplacementRule {
  readonly when: "BeforeDrain" | "None";
  readonly timeoutMs: Millis;
  readonly onTimeout: "Proceed" | "RollBack";
}

export interface DrainRule {
  readonly timeoutMs: Millis;
  readonly onTimeout: "RollBack" | "Proceed" | "Wait";
  readonly onSingleReplica: "Wait" | "RestartOwner";
  /** Under a notice: for which part of it a budget may hold a pod, 0 to 1. */
  readonly budgetShare: number;
  /** The first rule that selects a pod decides; pods that no rule selects take the default. */
  readonly podRules: readonly PodRule[];
}

export interface PodRule {
  readonly selector: LabelSelector;
  /** Namespaces that the rule covers; absent: all. */
  readonly namespaces?: readonly string[] | undefined;
  readonly action: "Evict" | "Skip" | "Block" | "WaitCompleted" | "Delete";
  /** For WaitCompleted: how long at most. */
  readonly timeoutMs?: Millis | undefined;
}

/** Release: as Drain, and the machine is released as soon as its node is empty. */
export type NoticeReaction = "Drain" | "Release" | "Cordon" | "Notify" | "Ignore";

export interface NoticeRule {
  readonly spotInterruption: NoticeReaction;
  readonly rebalance: NoticeReaction;
  readonly maintenance: NoticeReaction;
}

export interface InstanceRule {
  readonly release: ReleaseMode;
  /** How long a drained node waits for others to take its machine, where we do not. */
  readonly awaitMachineMs: Millis;
  /**
   * How long load balancers may go on sending to a node after its cordon; its machine lives on for
   * them.
   */
  readonly loadBalancerDelayMs: Millis;
  /** What an Auto Scaling group is told that waits at a lifecycle hook for the machine's end. */
  readonly lifecycleHook: HookResult;
}

/**
 * How a lifecycle hook is completed. `Abandon` ends a new instance, and skips the hooks that are
 * left of one that ends.
 */
export type HookResult = "Continue" | "Abandon";

/**
 * Recreate: the group makes a new machine; Delete: the group shrinks; NodeClaim: Karpenter takes
 * the machine, and makes another where one is needed; None: the machine stays.
 */
export type ReleaseMode = "Recreate" | "Delete" | "DeleteInstance" | "NodeClaim" | "None";

/** A policy that says nothing: every field with the default of contract.md. */
export const defaultPolicy: Policy = Object.freeze({
  name: "",
  weight: 0,
  lifetime: { minMs: minutes(0), reserveMs: minutes(30) },
  spacing: { mode: "Late", minMs: minutes(15) },
  windows: [],
  budgets: [],
  gates: { blockingPods: [] },
  replacement: { when: "None", timeoutMs: minutes(10), onTimeout: "Proceed" },
  drain: {
    timeoutMs: minutes(5),
    onTimeout: "RollBack",
    onSingleReplica: "Wait",
    budgetShare: 0.5,
    podRules: [],
  },
  onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
  instance: {
    release: "Recreate",
    awaitMachineMs: minutes(30),
    loadBalancerDelayMs: minutes(0),
    lifecycleHook: "Continue",
  },
  actions: [],
  paused: false,
  dryRun: false,
} satisfies Policy);
