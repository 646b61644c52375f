import { printable } from "../core/json/printable-text.ts";
import { accessChecks } from "./checks/access-checks.ts";
import { cloudChecks } from "./checks/cloud-checks.ts";
import { clusterChecks, nodeChecks } from "./checks/cluster-checks.ts";
import { controllerChecks } from "./checks/controller-checks.ts";
import { policyChecks } from "./checks/policy-checks.ts";
import type { Check, CheckStatus, DoctorFacts } from "./facts.ts";

/** The output of `lastcall doctor -o json`; the names are pinned. */
export interface DoctorReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "DoctorReport";
  readonly checks: readonly ReportedCheck[];
  readonly summary: Readonly<Record<CheckStatus, number>>;
}

export interface ReportedCheck {
  readonly id: string;
  readonly status: CheckStatus;
  readonly message: string;
  /** Null if there is nothing to do. */
  readonly fix: string | null;
}

/** Evaluates the facts by every check, in the order of the list. */
export function doctorReport(facts: DoctorFacts): DoctorReport {
  const checks = checkList.map((check): ReportedCheck => {
    const { status, message, fix = check.fix } = check.run(facts);
    const isFine = status === "Pass" || status === "Skip";
    // The names of people in a RoleBinding may be any text.
    const words = { message: printable(message), fix: isFine ? null : inNamespace(fix, facts) };
    return { id: check.id, status, ...words };
  });
  const count = (wanted: CheckStatus) => checks.filter(({ status }) => status === wanted).length;
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DoctorReport",
    checks,
    summary: { Pass: count("Pass"), Warn: count("Warn"), Fail: count("Fail"), Skip: count("Skip") },
  };
}

/** With the namespace that was looked in, so that the command can be run as it is shown. */
function inNamespace(fix: string, { namespace }: DoctorFacts): string {
  return fix.replace("-n NAMESPACE", `-n ${namespace}`);
}

/** Whether the command fails: a check failed, or one warned and `failOn` is `warn`. */
export function isRefused({ summary }: DoctorReport, failOn: "warn" | "fail"): boolean {
  return summary.Fail > 0 || (failOn === "warn" && summary.Warn > 0);
}

/** All checks, in the order of the report: what everything else depends on comes first. */
export const checkList: readonly Check[] = [
  ...clusterChecks,
  ...accessChecks,
  ...controllerChecks,
  ...policyChecks,
  ...cloudChecks,
  ...nodeChecks,
];
