import type { Millis } from "../time/time.ts";
import type { DrainPlan, DrainRemark, PlannedPod } from "./drain-plan.ts";
import { explainDrain, explainPlannedPod } from "./explain-drain.ts";

/** The pinned JSON of `lastcall drain-plan -o json`; contract.md section 1. Spans in seconds. */
export interface DrainPlanReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DrainPlan";
  readonly node: string;
  readonly noticeSeconds: number | null;
  readonly pods: readonly PodLine[];
  readonly skipped: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly reason: string;
  }[];
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
    skipped: plan.skipped.map(({ namespace, name, reason }) => ({ namespace, name, reason })),
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
    forceAtSeconds: secondsOf(pod.forceAtMs),
    budget: pod.budget ?? null,
    reason: pod.reason,
    explain: explainPlannedPod(pod),
  };
}

function remarkLine(remark: DrainRemark): RemarkLine {
  const { namespace, name, reason } = remark;
  return { namespace, name, reason, explain: explainDrain(reason, remark) };
}

function secondsOf(span: Millis | undefined): number | null {
  return span === undefined ? null : span / 1000;
}
