import { lifetimeLimits, spotLabels } from "../../cloud/facts/cloud-marks.ts";
import type { NodeFacts } from "../cluster/node.ts";
import {
  type LabelSelector,
  meetsRequirement,
  type NodeSelector,
  type NodeSelectorTerm,
} from "../cluster/pod.ts";
import { hours, type Instant, type Millis, minutes } from "../time/time.ts";
import type { Action } from "./action.ts";

/** A DeparturePolicy with its defaults filled in: the input of the planner and the drain. */
export interface Policy {
  readonly name: string;
  readonly weight: number;
  /** Absent: the known Spot and preemptible labels (`defaultNodeSelector` below). */
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
  /**
   * One sentence for each field with a mistake: the field, what was found and what was expected.
   */
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
  /** Instead of `maxMs`: the limit that the cloud names for each machine, if it names one. */
  readonly isPlatforms?: boolean | undefined;
  readonly reserveMs: Millis;
}

/** How old the machine of a node may become by its policy; undefined for any age. */
export function lifetimeLimit(
  { labels }: Pick<NodeFacts, "labels">,
  { lifetime: { maxMs, isPlatforms } }: Pick<Policy, "lifetime">,
): Millis | undefined {
  if (isPlatforms !== true) return maxMs;
  const found = lifetimeLimits.find(({ label, value }) => labels[label] === value);
  return found && hours(found.hours);
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

/**
 * The number of departures in each wave, the canary first; the next wave starts when all of them
 * have succeeded.
 */
export interface Waves {
  readonly sizes: readonly Amount[];
  /** Departures that ended before this do not count: the waves start again with the canary. */
  readonly restartedAt?: Instant | undefined;
}

/** A count, or a percentage of the matched nodes, which is rounded down to at least 1. */
export type Amount = { readonly count: number } | { readonly percent: number };

export interface Gates {
  readonly freezeUntil?: Instant | undefined;
  readonly alerts?: { readonly url: string; readonly matchers: readonly string[] } | undefined;
  readonly blockingPods: readonly LabelSelector[];
  /** Whether nodes whose departure ends a workload on several nodes are held. Default: Allow. */
  readonly gangWorkloads?: GangRule | undefined;
  /** The share of nodes that are not Ready, 0 to 1, from which none starts. Default: 0.55. */
  readonly maxUnhealthy?: number | undefined;
}

export type GangRule = "Hold" | "Allow";

export interface ReplacementRule {
  readonly when: "BeforeDrain" | "None";
  readonly timeoutMs: Millis;
  readonly onTimeout: "Proceed" | "RollBack";
  /** How long a machine that was released is expected back from its group. Default: 24 hours. */
  readonly expectForMs?: Millis | undefined;
}

export interface DrainRule {
  readonly timeoutMs: Millis;
  readonly onTimeout: "RollBack" | "Proceed" | "Wait";
  readonly onSingleReplica: "Wait" | "RestartOwner";
  /** Under a notice: the share of its time for which a budget may hold a pod, 0 to 1. */
  readonly budgetShare: number;
  /** The first rule that selects a pod decides; pods that no rule selects take the default. */
  readonly podRules: readonly PodRule[];
}

export interface PodRule {
  readonly selector: LabelSelector;
  /** Namespaces that the rule covers; absent: all. */
  readonly namespaces?: readonly string[] | undefined;
  readonly action: "Evict" | "Skip" | "Block" | "WaitCompleted" | "Delete";
  /** For WaitCompleted: the longest wait. */
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
  /**
   * How long a drained node waits for its machine to be terminated by others, if Lastcall does not
   * do that.
   */
  readonly awaitMachineMs: Millis;
  /**
   * How long load balancers may keep sending traffic to a node after its cordon; its machine is
   * kept for as long.
   */
  readonly loadBalancerDelayMs: Millis;
  /**
   * The result sent to an Auto Scaling group that waits at a lifecycle hook for the machine's
   * termination.
   */
  readonly lifecycleHook: HookResult;
}

/**
 * How a lifecycle hook is completed. `Abandon` terminates an instance that is launching; for one
 * that is terminating, it skips the remaining hooks.
 */
export type HookResult = "Continue" | "Abandon";

/**
 * Recreate: the group replaces the machine; Delete: the group shrinks; NodeClaim: Karpenter
 * terminates the machine and replaces it if needed; None: the machine is kept.
 */
export type ReleaseMode = "Recreate" | "Delete" | "DeleteInstance" | "NodeClaim" | "None";

/** A policy that sets nothing: every field has the default of docs/reference/departurepolicy.md. */
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

/** Nodes that a cloud or a provisioner labels as Spot or preemptible; any one label is enough. */
export const defaultNodeSelector: NodeSelector = {
  nodeSelectorTerms: Object.entries(spotLabels).map(([key, { spot }]) => labelled(key, spot)),
};

export interface PolicyChoice {
  readonly policy: Policy;
  /** Other matching policies of the same weight, which come later by name; sorted. */
  readonly tiedWith: readonly string[];
}

const nobody: readonly string[] = [];

/**
 * Selects the policy of a node: of the matching ones, the one with the highest weight, then the
 * first by name. Undefined if none matches.
 */
export function selectPolicy(
  node: NodeFacts,
  policies: readonly Policy[],
): PolicyChoice | undefined {
  let policy: Policy | undefined;
  let tied = nobody;
  for (const other of policies) {
    if (policy !== undefined && other.weight < policy.weight) continue;
    if (!matchesNodeSelector(node, other.nodeSelector ?? defaultNodeSelector)) continue;
    if (policy === undefined || other.weight > policy.weight) {
      policy = other;
      tied = nobody;
    } else if (other.name < policy.name) {
      tied = [...tied, policy.name];
      policy = other;
    } else tied = [...tied, other.name];
  }
  return policy && { policy, tiedWith: tied === nobody ? nobody : [...tied].sort() };
}

/** The nodes that the policy's selector matches, whether or not another policy applies to them. */
export function selectedBy(policy: Policy, nodes: readonly NodeFacts[]): readonly NodeFacts[] {
  const selector = policy.nodeSelector ?? defaultNodeSelector;
  return nodes.filter((node) => matchesNodeSelector(node, selector));
}

/**
 * Whether any term selects the node, as in node affinity: the requirements of a term must all hold,
 * a term without requirements selects nothing, and so does a selector without terms.
 */
export function matchesNodeSelector(node: NodeFacts, selector: NodeSelector): boolean {
  for (const term of selector.nodeSelectorTerms) if (matchesTerm(node, term)) return true;
  return false;
}

function matchesTerm(node: NodeFacts, term: NodeSelectorTerm): boolean {
  const { matchExpressions, matchFields } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  for (const wanted of matchExpressions) {
    if (!meetsRequirement(node.labels, wanted)) return false;
  }
  // Node affinity supports one field; a requirement on any other selects nothing.
  return matchFields.every(
    (wanted) =>
      wanted.key === "metadata.name" && meetsRequirement({ "metadata.name": node.name }, wanted),
  );
}

function labelled(key: string, values: readonly string[]): NodeSelectorTerm {
  return { matchExpressions: [{ key, operator: "In", values }], matchFields: [] };
}
