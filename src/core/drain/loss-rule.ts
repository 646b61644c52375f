/** How a pod of a drain can come off badly, as the audit could have foretold it. */
export type Loss =
  /** It got fewer seconds than it asked for. */
  | "Cut"
  /** It got all that it asked for, and was still there when they were over. */
  | "OverGrace"
  /** Its budget never let it go. */
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
export function wordOnRule(rule: string): string {
  return `(audit rule ${rule}, docs/audit/${rule}.md)`;
}
