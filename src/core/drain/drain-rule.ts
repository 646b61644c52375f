import type { PodFacts } from "../cluster/pod.ts";
import { cloudDeadline, type Departure, isNoticed, mayBeIgnored } from "../departure/departure.ts";
import { drainBeganAt } from "../departure/ledger.ts";
import type { DrainRule } from "../policy/policy.ts";
import { between, type Instant, later, type Millis, plus, seconds } from "../time/time.ts";

/**
 * How long after the cordon a scheduler that has not seen it may still bind a pod to the node.
 */
export const bindingMs: Millis = seconds(2);

/**
 * The drain rule of one departure. A requested deadline replaces the policy's timeout, whether
 * longer or shorter; the policy still decides what happens when time is up. If the cloud takes the
 * machine without a deadline, there is no timeout: blocked pods are retried until the machine is
 * gone.
 */
export function drainRuleOf(
  departure: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const { cause } = departure;
  const endsAt = cloudDeadline(departure);
  const goesSometime = isNoticed(departure) && endsAt === undefined && !mayBeIgnored(cause);
  const wanted = withPersonsTime(departure, { rule, now });
  return goesSometime && rule.onTimeout === "RollBack" ? { ...wanted, onTimeout: "Wait" } : wanted;
}

function withPersonsTime(
  { cause, deadlineAt, status }: Departure,
  { rule, now }: { readonly rule: DrainRule; readonly now: Instant },
): DrainRule {
  const beganAt = drainBeganAt(status) ?? now;
  if (cause !== "Manual" || deadlineAt === undefined || deadlineAt <= beganAt) return rule;
  return { ...rule, timeoutMs: between(beganAt, deadlineAt) };
}

/**
 * How long to evict the pods of a machine that has already stopped, regardless of budgets.
 */
export const clearingMs: Millis = seconds(30);

/**
 * The deadline of a drain. If it has passed when the drain starts, or when it becomes known, the
 * drain gets `clearingMs`: the machine may still be there, and if not, its pods are needed
 * elsewhere.
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

/**
 * Since when a drain has known its notice. The time before does not count for the budget's share.
 */
export function noticeKnownAt({ beganAt, noticedAt }: DrainSince): Instant {
  return later(beganAt, noticedAt ?? beganAt);
}

/**
 * For a resumed drain: the pods that were there when it started. Creation times have a resolution
 * of one second, so a pod created in the second of the start counts as created after it.
 */
export function thereBefore(pods: readonly PodFacts[], beganAt: Instant): readonly PodFacts[] {
  const secondAt = beganAt - (beganAt % seconds(1));
  return pods.filter(({ createdAt }) => createdAt === undefined || createdAt < secondAt);
}

/**
 * The rule for the deadline from `drainDeadline`: without a budget share if that is not the
 * announced one, see `clearingMs`.
 */
export function ruleUntil(
  deadlineAt: Instant | undefined,
  { rule, namedAt }: { readonly rule: DrainRule; readonly namedAt: Instant | undefined },
): DrainRule {
  return deadlineAt === namedAt ? rule : { ...rule, budgetShare: 0 };
}
