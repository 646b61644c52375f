import type { GraceSource, ShutdownGroup } from "../core/drain-plan/grace-budget.ts";
import { describeValue, fieldsOf, isFields, listOf, textOf } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";
import type { Landing } from "./landing.ts";
import type { PlaceOfField } from "./objects/kubelet-configuration.ts";
import type { BudgetSource } from "./platform.ts";
import type { Finding, Severity } from "./rule.ts";

/** What `lastcall audit -o json` prints; the names are pinned. */
export interface AuditReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "AuditReport";
  readonly platforms: readonly {
    readonly name: string;
    readonly groups: readonly ShutdownGroup[];
    readonly source: BudgetSource;
  }[];
  readonly workloads: readonly ReportedWorkload[];
  /** The worst first. */
  readonly findings: readonly Finding[];
  /** What an annotation `lastcall.dev/audit-ignore` sets aside, with its reason. */
  readonly ignored: readonly (Finding & { readonly reason: string })[];
  /** What the baseline already holds. */
  readonly known: readonly Finding[];
  /** Objects whose pods the input does not show. */
  readonly notJudged: readonly ReportedObject[];
  /** What a reader should know of how it was judged, one sentence each. */
  readonly notes: readonly string[];
  readonly summary: {
    readonly workloads: number;
    /** By platform: how many workloads get less than they ask for. */
    readonly cut: Readonly<Record<string, number>>;
    readonly findings: Readonly<Record<Severity, number>>;
  };
}

interface ObjectPlace {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly file: string | null;
  readonly line: number | null;
}

export interface ReportedWorkload extends ObjectPlace {
  readonly priority: number;
  readonly wantedGraceSeconds: number;
  readonly graceSource: GraceSource;
  /** Seconds by platform; a platform whose nodes the workload cannot be placed on is missing. */
  readonly granted: Readonly<Record<string, number>>;
  readonly cut: Readonly<Record<string, boolean>>;
  /** Whether its pods may be placed on Spot nodes: nowhere else, also there, or never. */
  readonly spot: Landing;
}

export interface ReportedObject extends ObjectPlace {
  readonly reason: "CustomResource" | "StaticPod";
}

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
