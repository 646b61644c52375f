import type { DrainCounts } from "../departure/departure.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import { between, type Instant } from "../time/time.ts";

export interface DrainHistory {
  /** The plan that the drain started or was resumed with. */
  readonly plan: DrainPlan;
  readonly startedAt: Instant;
  readonly endedAt: Instant;
  readonly counts: DrainCounts;
}

/**
 * Compares a drain with its plan, such as `3 pods in 8 s, planned within 62 s`; adds the pods whose
 * grace was cut, whether the plan predicted that, and the forced pods.
 */
export function drainAccount({ plan, startedAt, endedAt, counts }: DrainHistory): string {
  if (counts.total === 0) return "no pods to evict";
  const ends = plan.pods
    .filter(({ action }) => action !== "Block")
    .map(({ startMs, graceSeconds }) => startMs + graceSeconds * 1000);
  const plannedMs = between(startedAt, plan.at) + Math.max(0, ...ends);
  const cut = plan.pods.filter((pod) => pod.cut).length;
  const pods = counts.total === 1 ? "1 pod" : `${counts.total} pods`;
  return [
    `${pods} in ${wholeSeconds(between(startedAt, endedAt))} s`,
    `planned within ${wholeSeconds(plannedMs)} s`,
    ...(counts.cut + cut > 0 ? [cutText(counts.cut, cut)] : []),
    ...(counts.forced > 0 ? [`${counts.forced} forced`] : []),
  ].join(", ");
}

function cutText(cut: number, plannedCut: number): string {
  const found = `${cut === 0 ? "none" : cut} with a truncated grace period`;
  return cut === plannedCut ? `${found}, as planned` : `${found} (planned: ${plannedCut})`;
}

function wholeSeconds(ms: number): number {
  return Math.round(ms / 1000);
}

/** What can go wrong for a pod in a drain that the audit can predict. */
export type Loss =
  /** It got less than its grace period. */
  | "Cut"
  /** It got its full grace period and was still running at the end of it. */
  | "OverGrace"
  /** Its disruption budget never allowed the eviction. */
  | "Blocked"
  /** Several budgets select it, so no eviction can succeed. */
  | "TwoBudgets";

/**
 * The rule of `lastcall audit` that predicts each loss, with its page `docs/audit/<rule>.md`. Core
 * does not import the rules: a test keeps the two in step.
 */
const rules: Readonly<Record<Loss, string>> = {
  Cut: "grace-cut",
  OverGrace: "exec-sigterm-lost",
  Blocked: "pdb-blocks-forever",
  TwoBudgets: "two-pdbs",
};

export const losses = Object.keys(rules) as readonly Loss[];

export function ruleOfLoss(loss: Loss): string {
  return rules[loss];
}

/** A reference for the end of a sentence: `(audit rule grace-cut, …)`. */
export function ruleReference(rule: string): string {
  return `(audit rule ${rule}, docs/audit/${rule}.md)`;
}
