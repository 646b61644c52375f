import type { NodeFacts } from "../core/cluster/node.ts";
import type { PolicyCondition } from "../core/plan/policy-status.ts";

/**
 * Judges whether workloads are ready for the nodes of a policy. Made in `src/cli` over `src/audit`,
 * which the controller may not know.
 */
export interface WorkloadAuditor {
  /**
   * Reads all workloads once and judges them against the nodes of each target; one verdict a
   * target, in their order. Throws LastcallError where they cannot be read.
   */
  judge(targets: readonly AuditTarget[], signal: AbortSignal): Promise<readonly WorkloadVerdict[]>;
}

export interface AuditTarget {
  readonly policy: string;
  /** The nodes under the policy; with none there is nothing to judge against. */
  readonly nodes: readonly NodeFacts[];
}

/** What the audit came to for one policy: for its status, and as numbers for metrics. */
export interface WorkloadVerdict {
  readonly policy: string;
  readonly condition: PolicyCondition;
  /** Open findings; rules without one are not listed. */
  readonly findings: readonly {
    readonly rule: string;
    readonly severity: string;
    readonly count: number;
  }[];
  /** By platform: workloads that get less than they ask for, and all others. */
  readonly workloads: readonly {
    readonly platform: string;
    readonly cut: number;
    readonly whole: number;
  }[];
}
