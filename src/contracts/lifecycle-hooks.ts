import type { LifecycleHook } from "../core/notice/lifecycle-hook.ts";

/**
 * The groups of a cloud, which wait for us. Made by `src/cloud/aws/auto-scaling.ts`; contract
 * suite: `test/contract/lifecycle-hooks.contract.ts`.
 */
export interface LifecycleHooks {
  /**
   * Tells the group to go on with the instance. Throws `LastcallError` `CLOUD_*`, and the signal's
   * reason when it aborts.
   */
  complete(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd>;
}

/**
 * `Over`: it did not wait any more, or somebody else has told it; `NotFound`: there is no such
 * group or hook, or not where we ask.
 */
export type HookEnd = "Completed" | "Over" | "NotFound";
