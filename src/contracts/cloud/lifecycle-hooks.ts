import type { LifecycleHook } from "../../core/notice/lifecycle-hook.ts";
import type { HookResult } from "../../core/policy/policy.ts";
import type { Millis } from "../../core/time/time.ts";

/**
 * The groups of a cloud that wait at a lifecycle hook. Made by `src/cloud/aws/auto-scaling.ts`;
 * contract suite: `test/contract/lifecycle-hooks.contract.ts`. All methods throw `LastcallError`
 * `CLOUD_*`, and the signal's reason when it aborts.
 */
export interface LifecycleHooks {
  /** Tells the group to go on with the instance, or to end it. */
  complete(hook: LifecycleHook, result: HookResult, signal: AbortSignal): Promise<HookEnd>;
  /** Has the group wait for another `heartbeatMs`, counted from now; `Completed`: it does. */
  extend(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd>;
  /** How long the hook waits; undefined where there is no such group or hook. */
  limits(hook: LifecycleHook, signal: AbortSignal): Promise<HookLimits | undefined>;
}

/**
 * `Over`: it no longer waited, or something else has completed the hook; `NotFound`: there is no
 * such group or hook, or not where we ask.
 */
export type HookEnd = "Completed" | "Over" | "NotFound";

export interface HookLimits {
  /** Without a heartbeat the wait ends after this. */
  readonly heartbeatMs: Millis;
  /** It ends after this, however many heartbeats there are. */
  readonly longestMs: Millis;
}
