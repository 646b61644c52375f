import type { UnplacedPod } from "../capacity/capacity-fit.ts";
import type { NodeFacts } from "../cluster/node.ts";
import type { BudgetFacts, OwnerFacts, PodFacts, PodIdentity } from "../cluster/pod.ts";
import { type BudgetDemand, type DrainReason, heldByBudget } from "../departure/drain-reason.ts";
import type { DrainRule } from "../policy/policy.ts";
import { between, earlier, type Instant, later, type Millis, millis, plus } from "../time/time.ts";
import { budgetName, budgetsOf } from "./budget-standing.ts";
import { type DrainLimit, forceTime, graceAt, type KnownDeadline, limitOf } from "./drain-limit.ts";
import { layWaves, type Tier, tierOf, tiers, type WavePod, type WaveSlot } from "./drain-order.ts";
import { type DrainAction, type DrainScene, decidePod, type PodDecision } from "./pod-action.ts";

/**
 * The pods of one node in order, each with the grace that it really gets. Spans count from `at`.
 */
export interface DrainPlan {
  readonly node: string;
  readonly at: Instant;
  /** The remaining time of the notice; absent in a planned drain. */
  readonly noticeMs?: Millis | undefined;
  readonly deadlineAt?: Instant | undefined;
  /** Budgets get their share of the span from here to the deadline; `at` or earlier. */
  readonly knownAt?: Instant | undefined;
  /**
   * The kubelet no longer responds: nothing will confirm that a pod is gone. In a voluntary drain
   * its pods may still run, and do not count as gone.
   */
  readonly unreachable: false | "Voluntary" | "Noticed";
  /** By tier, start, namespace and name. */
  readonly pods: readonly PlannedPod[];
  readonly skipped: readonly (PodIdentity & { readonly reason: DrainReason })[];
  readonly blocked: readonly DrainRemark[];
  readonly warnings: readonly DrainRemark[];
  readonly demands: readonly BudgetDemand[];
}

export interface PlannedPod extends PodIdentity {
  readonly action: DrainAction;
  readonly tier: Tier;
  readonly startMs: Millis;
  readonly wantedGraceSeconds: number;
  readonly graceSeconds: number;
  /** Whether it gets less than it wants. */
  readonly cut: boolean;
  /**
   * Under a notice: when it is deleted if a budget still holds it. If pods of its workload are
   * known to need less than the time that then remains, it is deleted later; see drain-limit.ts.
   */
  readonly forceAtMs?: Millis | undefined;
  /** The grace period of that deletion. */
  readonly forcedGraceSeconds?: number | undefined;
  /** `namespace/name` of the budget that covers it. */
  readonly budget?: string | undefined;
  /** Every budget that selects it, for an Event about each. */
  readonly budgets: readonly PodIdentity[];
  readonly reason: DrainReason;
  readonly detail?: string | undefined;
  /** When a block by an annotation expires. */
  readonly freeAt?: Instant | undefined;
  /** The longest wait that a WaitCompleted rule allows. */
  readonly waitMs?: Millis | undefined;
  /** When that wait, or one for as long as the drain lasts, is over. */
  readonly waitEndsMs?: Millis | undefined;
  readonly owner?: OwnerFacts | undefined;
}

/** A remark on one pod; on the node itself if `namespace` is empty. */
export interface DrainRemark {
  readonly namespace: string;
  readonly name: string;
  readonly reason: DrainReason;
  readonly detail?: string | undefined;
}

export interface DrainQuestion {
  readonly node: NodeFacts;
  /** May include pods of other nodes, which are ignored. */
  readonly pods: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly rule: DrainRule;
  /** When the machine may be gone, under a notice. */
  readonly deadlineAt?: Instant | undefined;
  /** Since when the drain has known that deadline; absent: now. */
  readonly knownAt?: Instant | undefined;
  /** Whether the cloud takes the machine; absent: if there is a deadline. */
  readonly isNoticed?: boolean | undefined;
  readonly now: Instant;
  /** When the wait for pods that have to complete started; absent: now. */
  readonly waitsSince?: Instant | undefined;
  /** The uids of the pods that existed when the drain started; absent: it has not started. */
  readonly beganWith?: ReadonlySet<string> | undefined;
  /** Every pod of the cluster, if known: for budgets without a fresh status. */
  readonly everyPod?: readonly PodFacts[] | undefined;
  readonly terminatingNamespaces?: ReadonlySet<string> | undefined;
  /** Every DaemonSet, as `namespace/name`, if known. */
  readonly daemonSets?: ReadonlySet<string> | undefined;
  /** The uid of the controller's own pod, which leaves last. */
  readonly self?: string | undefined;
}

const unreachableTaint = "node.kubernetes.io/unreachable";

/**
 * Plans how the pods of one node would leave: each pod of the node is either in `skipped` or in
 * `pods`, exactly once. Grace is `spec.terminationGracePeriodSeconds`, which includes preStop; it
 * is never extended (a declared grace under 1 s counts as 1, as the API server treats a negative
 * one). `layWaves` determines the order and the seconds. What would be blocked or lost is reported,
 * and does not stop the plan. Does not throw.
 */
export function planDrain(question: DrainQuestion): DrainPlan {
  const { node, now } = question;
  const scene = sceneOf(question);
  const here = question.pods.filter((pod) => pod.nodeName === node.name).sort(byName);
  const decided = here.map((pod) => ({ pod, decision: decidePod(pod, scene) }));
  const acting = decided.filter((one): one is Acting => one.decision.kind === "Act");
  const notice = noticeOf(question);
  const limit = limitIn(acting, { question, notice });
  const waves = acting.map((one) => waveOf(one, { question, scene, limit }));
  const slots = layWaves(waves, { limit, at: now });
  const pods = acting.map((one, i) => {
    const [wave, slot] = [waves[i] as WavePod, slots[i] as WaveSlot];
    return plannedPod(one, { wave, slot, limit, question });
  });
  return Object.freeze({
    node: node.name,
    at: now,
    noticeMs: notice && millis(Math.max(0, between(now, notice.deadlineAt))),
    ...notice,
    unreachable: scene.unreachable && (scene.isNoticed ? "Noticed" : "Voluntary"),
    pods: Object.freeze(pods.sort(inOrder)),
    skipped: Object.freeze(decided.flatMap(skippedPod).sort(byName)),
    blocked: Object.freeze(pods.filter((pod) => pod.action === "Block").map(remarkOn)),
    warnings: Object.freeze([...nodeWarnings(node, scene), ...decided.flatMap(warningsOf)]),
    demands: Object.freeze(demandsOf(acting, question.budgets)),
  });
}

/** Adds a warning to the plan for each of its pods that fits nowhere else. */
export function warnOfCapacity(plan: DrainPlan, unplaced: readonly UnplacedPod[]): DrainPlan {
  const warnings = unplaced
    .toSorted((a, b) => byName(a.pod, b.pod))
    .map(({ pod: { namespace, name }, detail }): DrainRemark => {
      return { namespace, name, reason: "NoCapacityElsewhere", detail };
    });
  return Object.freeze({ ...plan, warnings: Object.freeze([...plan.warnings, ...warnings]) });
}

interface Decided {
  readonly pod: PodFacts;
  readonly decision: PodDecision;
}

interface Acting {
  readonly pod: PodFacts;
  readonly decision: Extract<PodDecision, { kind: "Act" }>;
}

/** The taint follows the condition. */
export function isUnreachable({ isUnreachable: isSilent, taints }: NodeFacts): boolean {
  return isSilent === true || taints.some(({ key }) => key === unreachableTaint);
}

function sceneOf(question: DrainQuestion): DrainScene {
  return {
    rule: question.rule,
    budgets: question.budgets,
    everyPod: question.everyPod,
    terminatingNamespaces: question.terminatingNamespaces ?? new Set(),
    daemonSets: question.daemonSets,
    unreachable: isUnreachable(question.node),
    isNoticed: question.isNoticed ?? question.deadlineAt !== undefined,
    beganWith: question.beganWith,
    pressed: question.deadlineAt !== undefined,
    now: question.now,
  };
}

function waveOf(
  one: Acting,
  about: {
    readonly question: DrainQuestion;
    readonly scene: DrainScene;
    readonly limit: DrainLimit;
  },
): WavePod {
  const { pod, decision } = one;
  const { question, scene } = about;
  const { completion } = decision;
  // Nothing confirms that a pod of an unreachable machine is gone, and no other waits for it.
  const isUnconfirmed = scene.unreachable && scene.isNoticed;
  const leavingMs =
    pod.deletionAt === undefined
      ? undefined
      : millis(isUnconfirmed ? 0 : Math.max(0, between(question.now, pod.deletionAt)));
  return {
    tier: tierOf(pod, question.self),
    wantedSeconds: ownGrace(pod),
    leavingMs,
    waitMs: completion && waitLeft(pod, { boundMs: completion.boundMs, question }),
    staysMs: isUnconfirmed ? 0 : staysHeld(decision, about.limit),
  };
}

/**
 * In other planned drains, what is held now is assumed to leave in its turn: otherwise they have no
 * end that could be planned.
 */
function staysHeld(
  { action, reason, freeAt }: Acting["decision"],
  limit: DrainLimit,
): number | undefined {
  if (limit.kind !== "Proceed") return undefined;
  const isKept = action === "Block" && (freeAt === undefined || freeAt > limit.at);
  return isKept || heldByBudget.has(reason) ? Number.POSITIVE_INFINITY : undefined;
}

/**
 * How much longer to wait for a pod to complete. For a pod that came during the drain, the wait
 * counts from its start; a wait without its own limit lasts until the drain's time is up.
 */
function waitLeft(
  { startedAt }: PodFacts,
  about: { readonly boundMs: Millis | undefined; readonly question: DrainQuestion },
): Millis {
  const { deadlineAt, rule, now, waitsSince = now } = about.question;
  if (about.boundMs === undefined && deadlineAt !== undefined) return between(now, deadlineAt);
  const sinceAt = earlier(now, later(waitsSince, startedAt ?? waitsSince));
  const wholeMs = about.boundMs ?? rule.timeoutMs;
  return millis(Math.max(0, wholeMs - between(sinceAt, now)));
}

/**
 * The grace that a pod requests: at least one second, so that the kubelet ends it and not the API
 * server.
 */
function ownGrace(pod: PodFacts): number {
  return Math.max(1, pod.graceSeconds);
}

interface PodPlace {
  readonly wave: WavePod;
  readonly slot: WaveSlot;
  readonly limit: DrainLimit;
  readonly question: DrainQuestion;
}

function plannedPod(one: Acting, about: PodPlace): PlannedPod {
  const { pod, decision } = one;
  const { wave, slot, question } = about;
  const { wantedSeconds: wanted } = wave;
  const tier = tierOf(pod, question.self);
  const cut = slot.graceSeconds < wanted;
  return Object.freeze({
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    action: decision.action,
    tier,
    startMs: slot.startMs,
    wantedGraceSeconds: wanted,
    graceSeconds: slot.graceSeconds,
    cut,
    ...forced(wanted, about),
    budget: decision.budget,
    budgets: decision.budgets,
    reason: reasonOf(decision, { tier, cut }),
    detail: decision.detail,
    freeAt: decision.freeAt,
    waitMs: decision.completion?.boundMs,
    waitEndsMs: wave.waitMs,
    owner: pod.controller,
  });
}

/** When a pod that is still held is deleted, and with how much grace; never before its start. */
function forced(
  wantedSeconds: number,
  { slot, limit, question: { now } }: PodPlace,
): Pick<PlannedPod, "forceAtMs" | "forcedGraceSeconds"> {
  if (limit.kind !== "Deadline") return {};
  const dueAt = forceTime({ wantedSeconds }, limit) ?? now;
  const at = later(plus(now, slot.startMs), dueAt);
  const forcedGraceSeconds = graceAt(wantedSeconds, { limit, at, isForced: true });
  return { forceAtMs: between(now, at), forcedGraceSeconds };
}

function limitIn(
  acting: readonly Acting[],
  about: {
    readonly question: DrainQuestion;
    readonly notice: KnownDeadline | undefined;
  },
): DrainLimit {
  const { rule, now, waitsSince: startedAt = now } = about.question;
  const waits = acting.map(({ decision }) => decision.completion?.boundMs ?? 0);
  const spanMs = millis(rule.timeoutMs + Math.max(0, ...waits));
  return limitOf({ rule, notice: about.notice, startedAt, spanMs });
}

/** The recorded time may come from a clock that is ahead of ours. */
function noticeOf({ deadlineAt, knownAt, now }: DrainQuestion): KnownDeadline | undefined {
  return deadlineAt && { deadlineAt, knownAt: earlier(knownAt ?? now, now) };
}

const ordinary: ReadonlySet<DrainReason> = new Set([
  "Evictable",
  "NoController",
  "EmptyDir",
  "HostPath",
]);

/** Of several reasons, the one that matters most to the pod's owner; losses are in the warnings. */
function reasonOf(
  decision: Acting["decision"],
  about: { readonly tier: Tier; readonly cut: boolean },
): DrainReason {
  if (!ordinary.has(decision.reason)) return decision.reason;
  if (about.cut) return "WillBeCut";
  if (about.tier === tiers.own) return "OwnController";
  if (about.tier === tiers.daemonSet) return "DaemonSetByRule";
  return decision.reason;
}

function skippedPod(one: Decided): (PodIdentity & { readonly reason: DrainReason })[] {
  const { namespace, name, uid } = one.pod;
  return one.decision.kind === "Skip"
    ? [{ namespace, name, uid, reason: one.decision.reason }]
    : [];
}

function remarkOn(pod: PlannedPod): DrainRemark {
  return { namespace: pod.namespace, name: pod.name, reason: pod.reason, detail: pod.detail };
}

function warningsOf(one: Decided): DrainRemark[] {
  const { namespace, name } = one.pod;
  return one.decision.warnings.map((remark) => ({ namespace, name, ...remark }));
}

function nodeWarnings(node: NodeFacts, scene: DrainScene): DrainRemark[] {
  return scene.unreachable ? [{ namespace: "", name: node.name, reason: "NodeUnreachable" }] : [];
}

function demandsOf(acting: readonly Acting[], budgets: readonly BudgetFacts[]): BudgetDemand[] {
  const demands = new Map<string, BudgetDemand>();
  for (const { pod, decision } of acting) {
    if (decision.action === "Delete" || pod.deletionAt !== undefined) continue;
    for (const budget of budgetsOf(pod, budgets)) {
      const name = budgetName(budget);
      const pods = (demands.get(name)?.pods ?? 0) + 1;
      demands.set(name, { budget: name, pods, disruptionsAllowed: budget.disruptionsAllowed });
    }
  }
  return [...demands.values()].sort((a, b) => (a.budget < b.budget ? -1 : 1));
}

function inOrder(a: PlannedPod, b: PlannedPod): number {
  return a.tier - b.tier || a.startMs - b.startMs || byName(a, b);
}

function byName(a: PodIdentity, b: PodIdentity): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
