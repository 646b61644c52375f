import type { DrainCounts } from "../departure/departure.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import { between, type Instant } from "../time/time.ts";

export interface DrainHistory {
  /** The plan that the drain began with, or was taken over with. */
  readonly plan: DrainPlan;
  readonly startedAt: Instant;
  readonly endedAt: Instant;
  readonly counts: DrainCounts;
}

/**
 * What a drain came to beside what was planned: `3 pods in 8 s, planned within 62 s`; with the
 * pods that were cut, whether the plan said so, and those that were forced, where there are any.
 */
export function drainAccount({ plan, startedAt, endedAt, counts }: DrainHistory): string {
  if (counts.total === 0) return "no pod had to leave";
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
  const found = `${cut === 0 ? "none" : cut} given less grace than asked for`;
  return cut === plannedCut ? `${found}, as planned` : `${found} (planned: ${plannedCut})`;
}

function wholeSeconds(ms: number): number {
  return Math.round(ms / 1000);
}

/** How a pod of a drain can come off badly, as the audit could have foretold it. */
export type Loss =
  /** It got fewer seconds than it asked for. */
  | "Cut"
  /** It got all that it asked for, and was still there when they were over. */
  | "OverGrace"
  /** Its budget never allowed the eviction. */
  | "Blocked"
  /** More than one budget selects it, so that no eviction can succeed. */
  | "TwoBudgets";

/**
 * The rule of `lastcall audit` that foretells each loss; its page is `docs/audit/<rule>.md`. Core
 * may not know the rules themselves: a test holds the two in step.
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

/** Where a person reads on, for the end of a sentence: `(audit rule grace-cut, …)`. */
export function ruleReference(rule: string): string {
  return `(audit rule ${rule}, docs/audit/${rule}.md)`;
}
