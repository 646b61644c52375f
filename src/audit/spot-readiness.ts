import type { AuditReport } from "./report.ts";
import { type Severity, severities } from "./rule.ts";

/** What a live audit says in one line, for a status condition, and in numbers, for a metric. */
export interface SpotReadiness {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "NothingFound" | "FindingsOpen" | "NoWorkloads";
  readonly message: string;
  /** Open findings by rule and severity; rules without one are not listed. */
  readonly counts: readonly {
    readonly rule: string;
    readonly severity: Severity;
    readonly count: number;
  }[];
}

/** Sums a report up. Warnings count as open, information does not. */
export function spotReadiness(report: AuditReport): SpotReadiness {
  const groups = Map.groupBy(report.findings, (one) => `${one.rule}/${one.severity}`);
  const counts = [...groups.values()].flatMap((findings) =>
    findings.slice(0, 1).map(({ rule, severity }) => ({ rule, severity, count: findings.length })),
  );
  if (report.workloads.length === 0) {
    const message = "No workload can be judged";
    return { status: "Unknown", reason: "NoWorkloads", message, counts };
  }
  const open = counts.filter((one) => one.severity !== "info");
  if (open.length === 0) {
    const message = `Nothing speaks against ${report.workloads.length} workloads on Spot nodes`;
    return { status: "True", reason: "NothingFound", message, counts };
  }
  const worst = open.toSorted((a, b) => rankOf(a.severity) - rankOf(b.severity));
  const message = worst.map((one) => `${one.count} ${one.rule}`).join(", ");
  return { status: "False", reason: "FindingsOpen", message, counts };
}

function rankOf(severity: Severity): number {
  return severities.indexOf(severity);
}

/** The rule that foretells what the ledger of a drain says of a pod. */
export function ruleOfLoss(loss: "Cut" | "NoGrace" | "Blocked"): string {
  const rules = {
    Cut: "grace-cut",
    NoGrace: "no-graceful-shutdown",
    Blocked: "pdb-blocks-forever",
  };
  return rules[loss];
}
