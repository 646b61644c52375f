import type { PolicyCondition, PolicyStatus } from "../core/plan/policy-status.ts";

/** Where the status of policies is written; for people's eyes, so that it never fails an act. */
export interface PolicyStatusSink {
  /** Writes what differs from what was written last; policies from a file have no status. */
  write(statuses: readonly PolicyStatus[]): Promise<void>;
  /** Takes a condition that comes at its own pace; it goes with the status, now and from now on. */
  add(policy: string, condition: PolicyCondition): Promise<void>;
}
