import type { NodeFacts } from "../core/cluster/node.ts";
import type { PolicyCondition } from "../core/plan/plan-status.ts";

/**
 * Judges whether workloads are ready for the nodes of a policy. Assembled in `src/cli` from
 * `src/audit`, which the controller does not import.
 */
export interface WorkloadAuditor {
  /**
   * Reads all workloads once and judges them against the nodes of each target. Returns one verdict
   * per target, in order. Throws a `LastcallError` if they cannot be read.
   */
  judge(targets: readonly AuditTarget[], signal: AbortSignal): Promise<readonly WorkloadVerdict[]>;
}

export interface AuditTarget {
  readonly policy: string;
  /** The policy's nodes. With none there is nothing to judge against. */
  readonly nodes: readonly NodeFacts[];
}

/** The result for one policy: a condition for its status and numbers for metrics. */
export interface WorkloadVerdict {
  readonly policy: string;
  readonly condition: PolicyCondition;
  /** Open findings; rules without one are not listed. */
  readonly findings: readonly {
    readonly rule: string;
    readonly severity: string;
    readonly count: number;
  }[];
  /** By platform: workloads whose grace period is cut, and the others. */
  readonly workloads: readonly {
    readonly platform: string;
    readonly cut: number;
    readonly whole: number;
  }[];
}
