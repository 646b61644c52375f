import type { DrainReason } from "../departure/drain-reason.ts";
import type { Millis } from "../time/time.ts";
import type { DrainPlan, DrainRemark, PlannedPod } from "./drain-plan.ts";

/** The facts that a sentence may name. Each reason uses those that it needs. */
export interface DrainFacts {
  /** What was found: a budget with its numbers, an annotation, the server's own message. */
  readonly detail?: string | undefined;
  readonly graceSeconds?: number | undefined;
  readonly wantedGraceSeconds?: number | undefined;
}

type DrainSentence = (facts: DrainFacts) => string;

const sentences: Readonly<Record<DrainReason, DrainSentence>> = {
  DaemonSet: () => "is skipped, because its DaemonSet would recreate it on the node at once",
  Mirror: () =>
    "is skipped, because it is the mirror of a static pod, which only the kubelet can end",
  Finished: () => "is skipped, because it has finished",
  PolicySkip: () => "is skipped, because a podRule of the policy says Skip",
  ComesBack: () =>
    "is skipped, because it was placed on the node during the drain despite the cordon, and might come back again and again",
  Evictable: (f) => `is evicted${grace(f)}`,
  WillBeCut: (f) =>
    `is evicted with ${f.graceSeconds ?? "?"} s of grace instead of ` +
    `${f.wantedGraceSeconds ?? "?"} s, because the deadline leaves no more`,
  OwnController: (f) => `is evicted last, because it runs this drain${grace(f)}`,
  DaemonSetByRule: (f) => `is evicted after the others, because a podRule names it${grace(f)}`,
  DeleteRule: () =>
    "is deleted regardless of its budgets, because a podRule of the policy says Delete",
  NodeUnreachable: () => "cannot be confirmed as terminated, because the node is unreachable",
  NoController: (f) => `is evicted${grace(f)} and not recreated, because it has no controller`,
  DaemonSetGone: (f) =>
    `is evicted${grace(f)} and not recreated, because its DaemonSet ${f.detail ?? "?"} no longer exists`,
  EmptyDir: (f) => `is evicted${grace(f)} and loses the data of its emptyDir`,
  HostPath: (f) => `is evicted${grace(f)} and leaves its hostPath data on the machine`,
  LocalVolume: (f) =>
    `is evicted${grace(f)}; its volume ${f.detail ?? "?"} is on this machine, and its data is destroyed with it`,
  NoCapacityElsewhere: (f) => `may fit on no other node: ${f.detail ?? "unknown"}`,
  Terminating: (f) => `is waited for, because it is already terminating${until(f)}`,
  StuckTerminating: (f) =>
    `is skipped, because it should have terminated long ago and has not${until(f)}`,
  NamespaceTerminating: (f) =>
    `terminates with its namespace ${f.detail ?? "?"}, which is being deleted and allows no evictions`,
  WaitCompleted: () => "is waited for until it completes, because a podRule says WaitCompleted",
  RestartOwner: (f) =>
    `is moved by a rollout restart of ${f.detail ?? "its owner"}, because it is the only replica`,
  DoNotDisturb: (f) => `is not evicted, because it has ${f.detail ?? "an annotation"}`,
  DoNotDisrupt: (f) => `is not evicted, because it has ${f.detail ?? "an annotation"}`,
  NotSafeToEvict: (f) => `is not evicted, because it has ${f.detail ?? "an annotation"}`,
  BlockRule: () => "is not evicted, because a podRule of the policy says Block",
  MultipleBudgets: (f) =>
    `cannot be evicted, because more than one budget selects it: ${f.detail ?? "unknown"}`,
  BudgetImpossible: (f) =>
    `cannot be evicted, because its budget can never allow it: ${f.detail ?? "unknown"}`,
  BudgetExhausted: (f) =>
    `cannot be evicted now, because its budget allows no disruption: ${f.detail ?? "unknown"}`,
  SingleReplica: (f) =>
    `cannot be evicted, because it is the only replica and its budget allows no disruption: ` +
    `${f.detail ?? "unknown"}`,
  AnnotationOverruled: (f) =>
    `is evicted although it has ${f.detail ?? "an annotation"}, because the cloud interrupts the node`,
  BlockRuleOverruled: () =>
    "is evicted although a podRule says Block, because the cloud interrupts the node",
  BudgetHolds: (f) => `is blocked by its budget: ${f.detail ?? "unknown"}`,
  BudgetStale: (f) => `waits for its budget's status: ${f.detail ?? "unknown"}`,
  ApiOverloaded: () => "waits, because the API server is overloaded",
  EvictionRefused: (f) => `is refused eviction: ${f.detail ?? "unknown"}`,
  EvictionFailed: (f) => `could not be evicted: ${f.detail ?? "unknown"}`,
  RestartRefused: (f) =>
    `waits for its budget, because the restart of its owner was refused: ${f.detail ?? "unknown"}`,
  AnswerLost: (f) => `may have been evicted, but the response was lost: ${f.detail ?? "unknown"}`,
  ForcedAtDeadline: (f) =>
    `was deleted instead of evicted${lastAnswer(f)}, because the deadline left no more time to wait${grantedOf(f)}`,
  ForcedAtTimeout: (f) =>
    `was deleted instead of evicted${lastAnswer(f)}, because the drain timed out and the policy says Proceed${grantedOf(f)}`,
};

/** The sentence for a reason, to be read after the name of the pod or node. */
export function explainDrain(reason: DrainReason, facts: DrainFacts): string {
  return sentences[reason](facts);
}

const heldByBudget: ReadonlySet<DrainReason> = new Set([
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
]);

/** The sentence about a planned pod: when it is deleted and how much grace it gets, if relevant. */
function explainPlannedPod(pod: PlannedPod): string {
  const parts = [explainDrain(pod.reason, pod)];
  if (heldByBudget.has(pod.reason) && pod.forceAtMs !== undefined) {
    const afterSeconds = pod.forceAtMs / 1000;
    const grace = grantedOf({ ...pod, graceSeconds: pod.forcedGraceSeconds });
    parts.push(
      `it is deleted after ${afterSeconds} s${grace}${grace === "" ? "" : ","} if it is still blocked`,
    );
  }
  if (pod.cut && pod.reason !== "WillBeCut" && pod.action !== "Wait") {
    parts.push(`grace period truncated from ${pod.wantedGraceSeconds} s to ${pod.graceSeconds} s`);
  }
  return parts.join("; ");
}

function grace(facts: DrainFacts): string {
  return facts.graceSeconds === undefined ? "" : ` with ${facts.graceSeconds} s of grace`;
}

/** Like `grace`, and names the grace that it wants if it gets less. */
function grantedOf(facts: DrainFacts): string {
  const { graceSeconds, wantedGraceSeconds } = facts;
  if (graceSeconds === undefined || wantedGraceSeconds === undefined) return grace(facts);
  if (graceSeconds >= wantedGraceSeconds) return grace(facts);
  return `, with its grace period truncated from ${wantedGraceSeconds} s to ${graceSeconds} s`;
}

/** What the API server said when it refused the eviction. */
function lastAnswer({ detail }: DrainFacts): string {
  return detail === undefined ? "" : ` (${detail.replace(/\.$/, "")})`;
}

function until(facts: DrainFacts): string {
  return facts.detail === undefined ? "" : `, with its deadline at ${facts.detail}`;
}

/**
 * The report of `lastcall drain-plan -o json`, with spans in seconds. Programs read it, so names
 * and shape must not change.
 */
export interface DrainPlanReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DrainPlan";
  readonly node: string;
  readonly noticeSeconds: number | null;
  readonly pods: readonly PodLine[];
  /** Pods that no one touches. */
  readonly skipped: readonly RemarkLine[];
  readonly blocked: readonly RemarkLine[];
  readonly warnings: readonly RemarkLine[];
}

export interface PodLine {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly action: string;
  readonly tier: number;
  readonly startSeconds: number;
  readonly wantedGraceSeconds: number;
  readonly graceSeconds: number;
  readonly cut: boolean;
  readonly forceAtSeconds: number | null;
  readonly budget: string | null;
  readonly reason: string;
  readonly explain: string;
}

export interface RemarkLine {
  readonly namespace: string;
  readonly name: string;
  readonly reason: string;
  readonly explain: string;
}

export function drainPlanReport(plan: DrainPlan): DrainPlanReport {
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DrainPlan",
    node: plan.node,
    noticeSeconds: secondsOf(plan.noticeMs),
    pods: plan.pods.map(podLine),
    skipped: plan.skipped.map(remarkLine),
    blocked: plan.blocked.map(remarkLine),
    warnings: plan.warnings.map(remarkLine),
  };
}

function podLine(pod: PlannedPod): PodLine {
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    action: pod.action,
    tier: pod.tier,
    startSeconds: pod.startMs / 1000,
    wantedGraceSeconds: pod.wantedGraceSeconds,
    graceSeconds: pod.graceSeconds,
    cut: pod.cut,
    forceAtSeconds: mayBeHeld(pod) ? secondsOf(pod.forceAtMs) : null,
    budget: pod.budget ?? null,
    reason: pod.reason,
    explain: explainPlannedPod(pod),
  };
}

/** Whether a budget may hold it: none holds a pod that is deleted, or terminates already. */
function mayBeHeld({ budget, action, reason }: PlannedPod): boolean {
  return budget !== undefined && action !== "Delete" && reason !== "Terminating";
}

function remarkLine(remark: DrainRemark): RemarkLine {
  const { namespace, name, reason } = remark;
  return { namespace, name, reason, explain: explainDrain(reason, remark) };
}

function secondsOf(span: Millis | undefined): number | null {
  return span === undefined ? null : span / 1000;
}
