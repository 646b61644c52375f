import { type DrainReason, heldByBudget } from "../departure/drain-reason.ts";
import { inEnglish, type Sentence, sentenceOf } from "../reason/english.ts";
import type { Millis } from "../time/time.ts";
import type { DrainPlan, DrainRemark, PlannedPod } from "./drain-plan.ts";

/** The facts that a sentence may name. Each reason uses those that it needs. */
export interface DrainFacts {
  /** What was found: a budget with its numbers, an annotation, the server's own message. */
  readonly detail?: string | undefined;
  readonly graceSeconds?: number | undefined;
  readonly wantedGraceSeconds?: number | undefined;
}

/** The sentence for a reason, to be read after the name of the pod or node. */
export function explainDrain(reason: DrainReason, facts: DrainFacts): string {
  const { detail } = facts;
  const told = isForced(reason) ? detail?.replace(/\.$/, "") : detail;
  return inEnglish(sentenceOf(`pod.${reason}`, { ...graceOf(facts), detail: told }));
}

/** It cites what the API server said when it refused the eviction. */
function isForced(reason: DrainReason): boolean {
  return reason === "ForcedAtDeadline" || reason === "ForcedAtTimeout";
}

/** The sentence about a planned pod: when it is deleted and how much grace it gets, if relevant. */
function explainPlannedPod(pod: PlannedPod): string {
  const { graceSeconds, wantedGraceSeconds, forcedGraceSeconds } = pod;
  const parts: Sentence[] = [];
  if (heldByBudget.has(pod.reason) && pod.forceAtMs !== undefined) {
    const given = graceOf({ wantedGraceSeconds, graceSeconds: forcedGraceSeconds });
    parts.push({ says: "drain.DeletedAfter", afterSeconds: pod.forceAtMs / 1000, ...given });
  }
  if (pod.cut && pod.reason !== "WillBeCut" && pod.action !== "Wait") {
    parts.push({ says: "drain.GraceCut", wantedGraceSeconds, graceSeconds });
  }
  return inEnglish([explainDrain(pod.reason, pod), ...parts]);
}

/** The grace that a pod wants is named if it gets less. */
function graceOf({ graceSeconds, wantedGraceSeconds }: DrainFacts) {
  const isLess = graceSeconds !== undefined && graceSeconds < (wantedGraceSeconds ?? 0);
  return { graceSeconds, wantedGraceSeconds: isLess ? wantedGraceSeconds : undefined };
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
