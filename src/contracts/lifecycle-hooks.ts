import type { LifecycleHook } from "../core/lifecycle-hook.ts";

/**
 * The groups of a cloud, which wait for us. Made by `src/cloud/aws/auto-scaling.ts`; contract
 * suite: `test/contract/lifecycle-hooks.contract.ts`.
 */
export interface LifecycleHooks {
  /**
   * Tells the group to go on with the instance. "Over": it did not wait any more, or somebody else
   * has told it. Throws `LastcallError` `CLOUD_*`.
   */
  complete(hook: LifecycleHook): Promise<"Completed" | "Over">;
}
