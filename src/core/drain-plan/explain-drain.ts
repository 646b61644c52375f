import type { DrainReason } from "../departure/drain-reason.ts";
import type { PlannedPod } from "./drain-plan.ts";

/** What a sentence may speak of. A reason uses what it needs and leaves the rest. */
export interface DrainFacts {
  /** What was found: a budget and its numbers, an annotation, the server's own message. */
  readonly detail?: string | undefined;
  readonly graceSeconds?: number | undefined;
  readonly wantedGraceSeconds?: number | undefined;
}

type Sentence = (facts: DrainFacts) => string;

const sentences: Readonly<Record<DrainReason, Sentence>> = {
  DaemonSet: () => "is left alone, because its DaemonSet would put it back on the node at once",
  Mirror: () =>
    "is left alone, because it is the shadow of a static pod, which only the kubelet ends",
  Finished: () => "is left alone, because it has finished",
  PolicySkip: () => "is left alone, because a podRule of the policy says Skip",
  Evictable: (f) => `is evicted${grace(f)}`,
  WillBeCut: (f) =>
    `is evicted with ${f.graceSeconds ?? "?"} s, because no more is left of the ` +
    `${f.wantedGraceSeconds ?? "?"} s that it wants`,
  OwnController: (f) => `is evicted last, because it runs this drain${grace(f)}`,
  DaemonSetByRule: (f) => `is evicted after the others, because a podRule names it${grace(f)}`,
  DeleteRule: () => "is deleted past its budgets, because a podRule of the policy says Delete",
  NodeUnreachable: () => "is not answered for: the node is unreachable and confirms no exit",
  NoController: (f) => `is evicted and comes back nowhere, because it has no controller${grace(f)}`,
  DaemonSetGone: (f) =>
    `is evicted${grace(f)} and comes back nowhere, because its DaemonSet ${f.detail ?? "?"} is gone`,
  EmptyDir: (f) => `is evicted and loses what its emptyDir holds${grace(f)}`,
  HostPath: (f) => `is evicted and leaves its hostPath data on the machine${grace(f)}`,
  NoCapacityElsewhere: (f) =>
    `may find no place elsewhere as things stand: ${f.detail ?? "unknown"}`,
  Terminating: (f) => `is waited for, because it is terminating already${until(f)}`,
  StuckTerminating: (f) =>
    `is left alone, because it should have terminated long ago and has not${until(f)}`,
  NamespaceTerminating: (f) =>
    `goes with its namespace ${f.detail ?? "?"}, which is being deleted and evicts nothing`,
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
    `cannot be evicted, because it is the only replica and its budget keeps it: ` +
    `${f.detail ?? "unknown"}`,
  AnnotationOverruled: (f) =>
    `is evicted although it has ${f.detail ?? "an annotation"}, because the cloud takes the node`,
  BlockRuleOverruled: () =>
    "is evicted although a podRule says Block, because the cloud takes the node",
  BudgetHolds: (f) => `is held by its budget: ${f.detail ?? "unknown"}`,
  BudgetStale: (f) => `waits for its budget's status: ${f.detail ?? "unknown"}`,
  ApiOverloaded: () => "waits, because the API server has too many requests",
  EvictionRefused: (f) => `is refused eviction: ${f.detail ?? "unknown"}`,
  EvictionFailed: (f) => `could not be evicted: ${f.detail ?? "unknown"}`,
  RestartRefused: (f) =>
    `waits for its budget, because the restart of its owner was refused: ${f.detail ?? "unknown"}`,
  AnswerLost: (f) => `may have been evicted, the answer was lost: ${f.detail ?? "unknown"}`,
  ForcedAtDeadline: (f) =>
    `was deleted past its budget, because the deadline left no other way${grantedOf(f)}`,
  ForcedAtTimeout: (f) =>
    `was deleted past its budget, because the drain's time was up and the policy goes on${grantedOf(f)}`,
};

/** The one sentence for a reason, to be read after the name of the pod or node. */
export function explainDrain(reason: DrainReason, facts: DrainFacts): string {
  return sentences[reason](facts);
}

const heldByBudget: ReadonlySet<DrainReason> = new Set([
  "MultipleBudgets",
  "BudgetImpossible",
  "BudgetExhausted",
  "SingleReplica",
]);

/**
 * The sentence on a pod of a plan: with when it is deleted, and what it gets, where that matters.
 */
export function explainPlannedPod(pod: PlannedPod): string {
  const parts = [explainDrain(pod.reason, pod)];
  if (heldByBudget.has(pod.reason) && pod.forceAtMs !== undefined) {
    const afterSeconds = pod.forceAtMs / 1000;
    const grace = grantedOf({ ...pod, graceSeconds: pod.forcedGraceSeconds });
    parts.push(`it is deleted after ${afterSeconds} s${grace}, if that is still so`);
  }
  if (pod.cut && pod.reason !== "WillBeCut" && pod.action !== "Wait") {
    parts.push(`it gets ${pod.graceSeconds} s of the ${pod.wantedGraceSeconds} s that it wants`);
  }
  return parts.join("; ");
}

function grace(facts: DrainFacts): string {
  return facts.graceSeconds === undefined ? "" : ` with ${facts.graceSeconds} s of grace`;
}

/** The same, and what it lacks of what it wants. */
function grantedOf(facts: DrainFacts): string {
  const { graceSeconds, wantedGraceSeconds } = facts;
  if (graceSeconds === undefined || wantedGraceSeconds === undefined) return grace(facts);
  if (graceSeconds >= wantedGraceSeconds) return grace(facts);
  return `, with ${graceSeconds} s of the ${wantedGraceSeconds} s of grace that it wants`;
}

function until(facts: DrainFacts): string {
  return facts.detail === undefined ? "" : `, with its deadline at ${facts.detail}`;
}
