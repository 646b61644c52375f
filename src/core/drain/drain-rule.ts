import type { PodFacts } from "../cluster/pod.ts";
import { cloudDeadline, type Departure, isNoticed, mayBeIgnored } from "../departure/departure.ts";
import { drainBeganAt } from "../departure/ledger.ts";
import type { DrainRule } from "../policy/policy.ts";
import { between, type Instant, later, type Millis, plus, seconds } from "../time/time.ts";

/**
 * From the cordon on: a scheduler that had chosen the node before it saw that has bound its pod by
 * then.
 */
export const bindingMs: Millis = seconds(2);

/**
 * The rule that one departure is drained by. Whoever asks for it by an instant gives it until then,
 * be that more or less than the policy does; what happens when time is up stays the policy's. But a
 * machine that the cloud takes at an instant that it does not name is not uncordoned after
 * the policy's time: what is held is asked until it gives way or the machine is gone.
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
 * Nothing of a machine that has stopped can be spared: its pods are moved within this, budgets or
 * not.
 */
export const clearingMs: Millis = seconds(30);

/**
 * The deadline by which a drain goes. One that is over as the drain begins, or as it becomes known,
 * leaves time to clear the node: the machine may still be there, and if it is not, its pods are
 * wanted elsewhere all the more.
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
 * From when a drain can have gone by its notice: that had passed before is no time for a budget.
 */
export function noticeKnownAt({ beganAt, noticedAt }: DrainSince): Instant {
  return later(beganAt, noticedAt ?? beganAt);
}

/**
 * The pods that were there as the drain began, for whoever takes it up. The API server names the
 * second in which a pod was created: one of the first second may be what was put back already.
 */
export function thereBefore(pods: readonly PodFacts[], beganAt: Instant): readonly PodFacts[] {
  const secondAt = beganAt - (beganAt % seconds(1));
  return pods.filter(({ createdAt }) => createdAt === undefined || createdAt < secondAt);
}

/**
 * The rule until the deadline that `drainDeadline` gives for the one that was named: see
 * `clearingMs`.
 */
export function ruleUntil(
  deadlineAt: Instant | undefined,
  { rule, namedAt }: { readonly rule: DrainRule; readonly namedAt: Instant | undefined },
): DrainRule {
  return deadlineAt === namedAt ? rule : { ...rule, budgetShare: 0 };
}
