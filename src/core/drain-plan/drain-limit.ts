import type { DrainRule } from "../policy/policy.ts";
import { between, type Instant, type Millis, millis, minus, plus, seconds } from "../time/time.ts";

/** What ends a drain. */
export type DrainLimit =
  /** The machine is gone then, whatever the pods need. */
  | (NoticeSpan & { readonly kind: "Deadline"; readonly at: Instant })
  /** Time is up then, and the policy proceeds without the remaining pods. */
  | { readonly kind: "Proceed"; readonly at: Instant; readonly spanMs: number }
  /** The drain is rolled back at a timeout, or waits without limit: no pod is forced. */
  | { readonly kind: "None" };

export interface NoticeSpan {
  /** The time from when the notice was known to its deadline. */
  readonly noticeMs: Millis;
  /** The share of it for which budgets are respected: 0 to 1. */
  readonly budgetShare: number;
}

/**
 * Reserved before a deadline: a request in flight, and the 2 s that the kubelet adds after a late
 * preStop.
 */
export const marginMs: Millis = seconds(2);

export interface KnownDeadline {
  /** When the machine may be gone. */
  readonly deadlineAt: Instant;
  /** Since when the drain has known that. */
  readonly knownAt: Instant;
}

/** The limit of a drain with this rule. */
export function limitOf(about: {
  readonly rule: Pick<DrainRule, "budgetShare" | "onTimeout">;
  readonly notice: KnownDeadline | undefined;
  /** When the drain started, and its timeout with the waits of its rules. */
  readonly startedAt: Instant;
  readonly spanMs: Millis;
}): DrainLimit {
  const { rule, notice, startedAt, spanMs } = about;
  if (notice !== undefined) {
    const { deadlineAt, knownAt } = notice;
    const noticeMs = between(knownAt, deadlineAt);
    return { kind: "Deadline", at: deadlineAt, noticeMs, budgetShare: rule.budgetShare };
  }
  if (rule.onTimeout !== "Proceed") return { kind: "None" };
  return { kind: "Proceed", at: plus(startedAt, spanMs), spanMs };
}

/**
 * The latest instant to evict a pod so that its grace period and the margin fit before the end; in
 * the past if they do not fit. If the policy proceeds after a timeout, not in the timeout's first
 * half.
 */
export function latestAsk(wantedSeconds: number, limit: DrainLimit): Instant | undefined {
  if (limit.kind === "None") return undefined;
  if (limit.kind === "Deadline") return minus(limit.at, neededBy(wantedSeconds));
  return minus(limit.at, leastTime(wantedSeconds, limit.spanMs));
}

function neededBy(wantedSeconds: number): Millis {
  return millis(wantedSeconds * 1000 + marginMs);
}

/** How long before the end of a timeout of `spanMs` a pod is asked at the latest. */
export function leastTime(wantedSeconds: number, spanMs: number): Millis {
  return millis(Math.min(neededBy(wantedSeconds), spanMs / 2));
}

export interface HeldGrace {
  readonly wantedSeconds: number;
  /** The longest time that pods of its workload are known to need; see drain-time.ts. */
  readonly neededMs?: Millis | undefined;
}

/** When a pod is deleted whose eviction is still refused; undefined: never. */
export function forceTime(pod: HeldGrace, limit: DrainLimit): Instant | undefined {
  if (limit.kind !== "Deadline") return latestAsk(pod.wantedSeconds, limit);
  return minus(limit.at, forceLead(pod, limit));
}

/**
 * How long before the deadline a pod that is still held is deleted. Its budget is respected for its
 * share of the notice, and longer if the grace that the pod wants, or the time that pods of its
 * workload are known to need, still fits after that. With a share of 0, the grace period takes
 * precedence over the budget, and known times do not count.
 */
function forceLead(pod: HeldGrace, { noticeMs, budgetShare }: NoticeSpan): Millis {
  const wantedMs = pod.wantedSeconds * 1000;
  const restMs = Math.round((1 - budgetShare) * noticeMs);
  const knownMs = budgetShare > 0 ? (pod.neededMs ?? wantedMs) : wantedMs;
  return millis(Math.min(wantedMs, restMs, knownMs) + marginMs);
}

/**
 * The grace of a pod that is asked to leave at an instant: what it wants, if a deadline leaves that
 * much. A timeout shortens only the grace of a pod that is deleted because of it.
 */
export function graceAt(
  wantedSeconds: number,
  about: { readonly limit: DrainLimit; readonly at: Instant; readonly isForced: boolean },
): number {
  const { limit, at, isForced } = about;
  if (limit.kind === "None" || (limit.kind === "Proceed" && !isForced)) return wantedSeconds;
  const leftMs = between(at, limit.at);
  // A policy proceeds no sooner after asking a pod; see `askedEnough`.
  const leastMs = limit.kind === "Proceed" ? leastTime(wantedSeconds, limit.spanMs) : leftMs;
  return fittedGrace(wantedSeconds, millis(Math.max(leftMs, leastMs)));
}

/** The grace that fits into `leftMs`, in whole seconds: at least 1, at most what the pod wants. */
export function fittedGrace(wantedSeconds: number, leftMs: Millis): number {
  return Math.max(1, Math.min(wantedSeconds, Math.floor(leftMs / 1000)));
}
