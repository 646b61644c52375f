import { fieldsOf, isFields, listOf, textOf } from "../core/json/json-field.ts";
import { describeValue } from "../core/json/shown-value.ts";
import { LastcallError } from "../errors.ts";
import type { PlaceOfField } from "./objects/kubelet-configuration.ts";
import type { Finding } from "./rule.ts";

/** Findings that are accepted: any saved report of the audit is a baseline. */
export interface Baseline {
  readonly keys: ReadonlySet<string>;
}

/** Reads a saved AuditReport; throws INPUT_INVALID for anything else. */
export function readBaseline(json: unknown, place: PlaceOfField): Baseline {
  if (!isFields(json) || json.kind !== "AuditReport" || !Array.isArray(json.findings)) {
    const found = isFields(json)
      ? `its kind is ${describeValue(json.kind)}`
      : `it is ${describeValue(json)}`;
    throw new LastcallError(
      "INPUT_INVALID",
      `Cannot read the baseline ${place(["kind"])}: ${found}, expected a saved AuditReport`,
    );
  }
  const findings = [...json.findings, ...listOf(json.known)].map(fieldsOf);
  const keys = findings.map((one) =>
    keyOf(textOf(one.rule), textOf(one.platform), textOf(one.object)),
  );
  return { keys: new Set(keys) };
}

/** A finding is known by rule, platform and object: lines and files move. */
export function isKnown(baseline: Baseline, finding: Finding): boolean {
  return baseline.keys.has(keyOf(finding.rule, finding.platform ?? undefined, finding.object));
}

function keyOf(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts.map((part) => part ?? ""));
}
