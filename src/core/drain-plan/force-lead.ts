import { type Millis, millis } from "../time/time.ts";
import { marginMs } from "./drain-order.ts";

export interface HeldGrace {
  readonly wantedSeconds: number;
  /** What its workload's pods are known to need at most; see termination-time.ts. */
  readonly neededMs?: Millis | undefined;
}

export interface NoticeSpan {
  /** From when the notice was known to the deadline. */
  readonly noticeMs: Millis;
  /** The part of it for which budgets are kept: 0 to 1. */
  readonly budgetShare: number;
}

/**
 * How long before the deadline a pod that is still held is deleted. Its budget is kept for its share
 * of the notice, and longer where what the pod wants fits in after that, or what its workload's pods
 * are known to need. A share of 0 puts the grace before the budget: what is known does not count.
 */
export function forceLead(pod: HeldGrace, { noticeMs, budgetShare }: NoticeSpan): Millis {
  const wantedMs = pod.wantedSeconds * 1000;
  const restMs = Math.round((1 - budgetShare) * noticeMs);
  const knownMs = budgetShare > 0 ? (pod.neededMs ?? wantedMs) : wantedMs;
  return millis(Math.min(wantedMs, restMs, knownMs) + marginMs);
}
