import type { DrainRule } from "../../policy/policy.ts";
import { type Instant, later, type Millis, plus, seconds } from "../../time/time.ts";

/** Nothing of a machine that has stopped can be spared: its pods are moved within this, budgets or not. */
export const clearingMs: Millis = seconds(30);

/**
 * The deadline by which a drain goes. One that is over as the drain begins, or as it becomes known, leaves
 * time to clear the node: the machine may still be there, and if it is not, its pods are wanted elsewhere
 * all the more.
 */
export function drainDeadline(
  deadlineAt: Instant | undefined,
  since: DrainSince,
): Instant | undefined {
  const fromAt = noticeKnownAt(since);
  return deadlineAt === undefined || deadlineAt > fromAt ? deadlineAt : plus(fromAt, clearingMs);
}

export interface DrainSince {
  readonly beganAt: Instant;
  readonly noticedAt?: Instant | undefined;
}

/** From when a drain can have gone by its notice: that had passed before is no time for a budget. */
export function noticeKnownAt({ beganAt, noticedAt }: DrainSince): Instant {
  return later(beganAt, noticedAt ?? beganAt);
}

/** The rule until the deadline that `drainDeadline` gives for the one that was named: see `clearingMs`. */
export function ruleUntil(
  deadlineAt: Instant | undefined,
  { rule, namedAt }: { readonly rule: DrainRule; readonly namedAt: Instant | undefined },
): DrainRule {
  return deadlineAt === namedAt ? rule : { ...rule, budgetShare: 0 };
}
