import { type Instant, later, type Millis, plus, seconds } from "./time.ts";

/** Nothing of a machine that has stopped can be spared: its pods are moved within this, budgets or not. */
export const clearingMs: Millis = seconds(30);

/**
 * The deadline by which a drain goes. One that is over as the drain begins, or as it becomes known, leaves
 * time to clear the node: the machine may still be there, and if it is not, its pods are wanted elsewhere
 * all the more.
 */
export function drainDeadline(
  deadlineAt: Instant | undefined,
  since: { readonly beganAt: Instant; readonly noticedAt?: Instant | undefined },
): Instant | undefined {
  const fromAt = later(since.beganAt, since.noticedAt ?? since.beganAt);
  return deadlineAt === undefined || deadlineAt > fromAt ? deadlineAt : plus(fromAt, clearingMs);
}
