import { repellingTaint } from "../capacity/capacity-fit.ts";
import { cordonTaint, departingTaint, type Taint } from "../cluster/node.ts";
import {
  type BudgetFacts,
  daemonSetOf,
  isOfApps,
  matchesLabelSelector,
  type PodFacts,
  type PodIdentity,
} from "../cluster/pod.ts";
import type { DrainReason } from "../departure/drain-reason.ts";
import type { DrainRule, PodRule } from "../policy/policy.ts";
import { formatInstant, type Instant, type Millis, millis, plus } from "../time/time.ts";
import { type BudgetStanding, budgetStanding, budgetsOf } from "./budget-standing.ts";
import { disturbanceMark } from "./pod-obstacle.ts";

export type DrainAction = "Evict" | "Delete" | "Wait" | "Block";

/**
 * A pod that is this far past its deletion deadline no longer holds up a drain, as in Karpenter.
 */
export const stuckAfterMs: Millis = millis(60_000);

/** The taints by which our cordon keeps pods off. */
const cordonTaints: readonly Taint[] = [cordonTaint, { key: departingTaint, effect: "NoSchedule" }];

/** What applies to all pods of one node. */
export interface DrainScene {
  readonly rule: DrainRule;
  readonly budgets: readonly BudgetFacts[];
  readonly everyPod?: readonly PodFacts[] | undefined;
  readonly terminatingNamespaces: ReadonlySet<string>;
  /** Every DaemonSet of Kubernetes itself, as `namespace/name`; absent if not known. */
  readonly daemonSets?: ReadonlySet<string> | undefined;
  readonly unreachable: boolean;
  /** Whether the cloud takes the machine. */
  readonly isNoticed: boolean;
  /** The uids of the pods that existed when the drain started; absent: it has not started. */
  readonly beganWith?: ReadonlySet<string> | undefined;
  /** Set under a notice: the machine is terminated whatever its pods need. */
  readonly pressed: boolean;
  readonly now: Instant;
}

export interface PodRemark {
  readonly reason: DrainReason;
  readonly detail?: string | undefined;
}

export type PodDecision =
  | (PodRemark & { readonly kind: "Skip"; readonly warnings: readonly PodRemark[] })
  | (PodRemark & {
      readonly kind: "Act";
      readonly action: DrainAction;
      readonly budget?: string | undefined;
      /** Every budget that selects it. */
      readonly budgets: readonly PodIdentity[];
      /** Set if it has to complete first: within `boundMs`, or else the drain's time. */
      readonly completion?: { readonly boundMs: Millis | undefined } | undefined;
      /** When a block expires. */
      readonly freeAt?: Instant | undefined;
      readonly warnings: readonly PodRemark[];
    });

type Act = Extract<PodDecision, { kind: "Act" }>;

/**
 * Decides what happens to one pod, and why: kubectl's drain table (pkg/drain/filters.go) with
 * defaults for Spot, where the machine is terminated anyway. A pod without a controller or with
 * local data is evicted with a warning instead of stopping the drain; docs/drain.md lists each
 * difference.
 */
export function decidePod(pod: PodFacts, scene: DrainScene): PodDecision {
  const rule = scene.rule.podRules.find((candidate) => selects(candidate, pod));
  const skipped = skipReason(pod, { rule, scene });
  if (skipped !== undefined) return { kind: "Skip", reason: skipped, warnings: [] };
  if (isStuck(pod, scene)) return leftStuck(pod);
  const standing = budgetStanding(pod, scene);
  const decision =
    leavingAlready(pod) ??
    (scene.pressed ? underNotice(pod, { scene, rule }) : planned(pod, { scene, rule })) ??
    byRule(rule) ??
    byBudget(pod, { scene, standing }) ??
    act({ action: "Evict", reason: "Evictable" });
  const budgets = budgetsOf(pod, scene.budgets).map(({ namespace, name, uid }) => {
    return { namespace, name, uid };
  });
  return withLosses({ ...decision, budget: standing.budget, budgets }, { pod, rule, scene });
}

function selects(rule: PodRule, pod: PodFacts): boolean {
  if (rule.namespaces !== undefined && !rule.namespaces.includes(pod.namespace)) return false;
  return matchesLabelSelector(rule.selector, pod.labels);
}

/** Mirror pods come first: deleting one has no effect on the static pod. */
function skipReason(
  pod: PodFacts,
  { rule, scene }: { readonly rule: PodRule | undefined; readonly scene: DrainScene },
): DrainReason | undefined {
  if (pod.mirror) return "Mirror";
  if (pod.phase === "Succeeded" || pod.phase === "Failed") return "Finished";
  // Whatever its API group: each kind of that name keeps its pods on cordoned nodes.
  const isKept = pod.controller?.kind === "DaemonSet" && !isOrphan(pod, scene);
  if (isKept && !namesDaemonSet(rule)) return "DaemonSet";
  if (rule?.action === "Skip") return "PolicySkip";
  if (comesBack(pod, scene)) return "ComesBack";
  return undefined;
}

/**
 * Whether the pod came to the node after the cordon, because it tolerates the cordon or was placed
 * there without the scheduler: if evicted, it might come back again and again, also without a
 * controller that owns it, as those of some operators. One without any is of somebody who wants to
 * be on this node, such as that of `kubectl debug node`. kubectl ignores pods that come later, too.
 */
function comesBack(pod: PodFacts, { beganWith }: DrainScene): boolean {
  if (beganWith === undefined || beganWith.has(pod.uid)) return false;
  if (pod.deletionAt !== undefined) return false;
  if (pod.bypassesScheduler) return true;
  return repellingTaint(cordonTaints, pod.tolerations) === undefined;
}

/** Whether nothing recreates the pod. kubectl requires `--force` here, and then evicts it. */
function isOrphan(pod: PodFacts, { daemonSets }: DrainScene): boolean {
  const daemonSet = daemonSetOf(pod);
  return daemonSet !== undefined && daemonSets !== undefined && !daemonSets.has(daemonSet);
}

/** A DaemonSet recreates its pod at once, so only an explicit rule evicts one. */
function namesDaemonSet(rule: PodRule | undefined): boolean {
  if (rule?.action !== "Evict" && rule?.action !== "Delete") return false;
  const labels = Object.keys(rule.selector.matchLabels ?? {}).length;
  return labels + (rule.selector.matchExpressions ?? []).length > 0;
}

/** A pod on a silent node may still run, however long ago its grace period has ended. */
function isStuck({ deletionAt }: PodFacts, scene: DrainScene): boolean {
  const { now, unreachable, isNoticed } = scene;
  if (unreachable && !isNoticed) return false;
  return deletionAt !== undefined && now > plus(deletionAt, stuckAfterMs);
}

/** Neither an eviction nor more time would help; a finalizer or the kubelet holds it. */
function leftStuck({ deletionAt }: PodFacts): PodDecision {
  const detail = deletionAt && formatInstant(deletionAt);
  const remark = { reason: "StuckTerminating", detail } as const;
  return { kind: "Skip", ...remark, warnings: [remark] };
}

function leavingAlready(pod: PodFacts): Act | undefined {
  if (pod.deletionAt === undefined) return undefined;
  const detail = formatInstant(pod.deletionAt);
  return act({ action: "Wait", reason: "Terminating", detail });
}

/** What blocks a planned departure, other than a budget. */
function planned(
  pod: PodFacts,
  about: { readonly scene: DrainScene; readonly rule: PodRule | undefined },
): Act | undefined {
  if (about.scene.terminatingNamespaces.has(pod.namespace)) {
    return act({ action: "Wait", reason: "NamespaceTerminating", detail: pod.namespace });
  }
  if (about.rule?.action === "Block") return act({ action: "Block", reason: "BlockRule" });
  if (about.rule?.action === "Delete") return undefined;
  const mark = disturbanceMark(pod, about.scene.now);
  return mark === undefined ? undefined : act({ action: "Block", ...mark });
}

/** The counterpart of `planned` under a notice: what would block is overruled, with a warning. */
function underNotice(
  pod: PodFacts,
  about: { readonly scene: DrainScene; readonly rule: PodRule | undefined },
): Act | undefined {
  // The API evicts nothing from a namespace that is being deleted, and its deletion does not
  // respect budgets either.
  if (about.scene.terminatingNamespaces.has(pod.namespace)) {
    return act({ action: "Delete", reason: "NamespaceTerminating", detail: pod.namespace });
  }
  return undefined;
}

function byRule(rule: PodRule | undefined): Act | undefined {
  if (rule?.action === "Delete") return act({ action: "Delete", reason: "DeleteRule" });
  if (rule?.action !== "WaitCompleted") return undefined;
  const completion = { boundMs: rule.timeoutMs };
  return act({ action: "Wait", reason: "WaitCompleted", completion });
}

/**
 * Decides about a pod whose budget allows no disruption. Under a notice, or if the policy proceeds
 * after a timeout, the eviction is attempted anyway, and the pod is deleted when the time is up.
 */
function byBudget(
  pod: PodFacts,
  about: { readonly scene: DrainScene; readonly standing: BudgetStanding },
): Act | undefined {
  const { scene, standing } = about;
  if (standing.kind === "Free") return undefined;
  const restarts = scene.rule.onSingleReplica === "RestartOwner" && canRestart(pod);
  if (standing.singleReplica && restarts && !scene.pressed) {
    return act({ action: "Wait", reason: "RestartOwner", detail: pod.controller?.name });
  }
  const remark = { reason: obstacle(standing), detail: standing.detail };
  if (scene.pressed || scene.rule.onTimeout === "Proceed") {
    return act({ action: "Evict", ...remark, warnings: [remark] });
  }
  return act({ action: "Block", ...remark });
}

function obstacle(standing: Exclude<BudgetStanding, { kind: "Free" }>): DrainReason {
  if (standing.kind === "Multiple") return "MultipleBudgets";
  if (standing.singleReplica) return "SingleReplica";
  return standing.kind === "Impossible" ? "BudgetImpossible" : "BudgetExhausted";
}

/** Owners of other API groups may have no rollout, and are others than those of these names. */
function canRestart({ controller }: PodFacts): boolean {
  if (controller === undefined || !isOfApps(controller)) return false;
  return controller.kind === "ReplicaSet" || controller.kind === "StatefulSet";
}

/**
 * Adds what is lost or overruled. A rule that says Evict or Delete has already accepted the loss.
 */
function withLosses(
  decision: Act,
  about: {
    readonly pod: PodFacts;
    readonly rule: PodRule | undefined;
    readonly scene: DrainScene;
  },
): Act {
  const { pod, rule, scene } = about;
  if (decision.action === "Block" || pod.deletionAt !== undefined) return decision;
  const accepted = rule?.action === "Evict" || rule?.action === "Delete" || isPlaceholder(pod);
  const losses = accepted ? [] : lossesOf(pod, scene);
  const warnings = [
    ...decision.warnings,
    ...(scene.pressed ? overruled(pod, { rule, now: scene.now }) : []),
    ...losses,
  ];
  if (decision.reason !== "Evictable") return { ...decision, warnings };
  if (scene.unreachable) return { ...decision, warnings, reason: "NodeUnreachable" };
  return { ...decision, warnings, ...losses[0] };
}

/** Whether it is one of our placeholder pods, which are recreated if still needed. */
function isPlaceholder({ labels }: PodFacts): boolean {
  return (
    labels["app.kubernetes.io/name"] === "lastcall" &&
    labels["app.kubernetes.io/component"] === "placeholder"
  );
}

function lossesOf(pod: PodFacts, scene: DrainScene): readonly PodRemark[] {
  const losses: PodRemark[] = [];
  if (pod.controller === undefined) losses.push({ reason: "NoController" });
  if (isOrphan(pod, scene)) losses.push({ reason: "DaemonSetGone", detail: pod.controller?.name });
  if (pod.emptyDir) losses.push({ reason: "EmptyDir" });
  if (pod.hostPath) losses.push({ reason: "HostPath" });
  const localClaims = pod.localClaims ?? [];
  if (localClaims.length > 0)
    losses.push({ reason: "LocalVolume", detail: localClaims.join(", ") });
  return losses;
}

function overruled(
  pod: PodFacts,
  about: { readonly rule: PodRule | undefined; readonly now: Instant },
): readonly PodRemark[] {
  const mark = disturbanceMark(pod, about.now);
  return [
    ...(about.rule?.action === "Block" ? [{ reason: "BlockRuleOverruled" } as const] : []),
    ...(mark === undefined
      ? []
      : [{ reason: "AnnotationOverruled", detail: mark.detail } as const]),
  ];
}

function act(
  about: Omit<Act, "kind" | "warnings" | "budgets"> & { readonly warnings?: readonly PodRemark[] },
): Act {
  return { kind: "Act", warnings: [], budgets: [], ...about };
}
