import type { GraceSource, ShutdownGroup } from "../core/drain-plan/drain-order.ts";
import {
  describeValue,
  fieldsOf,
  isFields,
  listOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";
import type { AuditedFleet, Landing } from "./fleet.ts";
import type { PlaceOfField } from "./objects/audit-node.ts";
import { type FieldPointer, type Manifest, nameOfObject } from "./objects/manifest.ts";
import { type Workload, workloadKindOf } from "./objects/workload.ts";
import type { BudgetSource, Platform } from "./platform.ts";

/** The most harmful first. `error`: pods will be lost or a drain will get stuck. */
export const severities = ["error", "warning", "info"] as const;

export type Severity = (typeof severities)[number];

/** One statement of a rule about one object. */
export interface Finding {
  readonly rule: string;
  readonly severity: Severity;
  /** The platform that it applies to; null if it applies to all. */
  readonly platform: string | null;
  readonly object: string;
  readonly message: string;
  readonly fix: string;
  readonly file: string | null;
  /** The first line of the object. */
  readonly line: number | null;
  /** The line of the field that it is about, if there is one in a file. */
  readonly fieldLine?: number;
}

/** A finding as its rule returns it, before the audit adds the rule's name. */
export interface Remark {
  readonly severity: Severity;
  readonly platform?: string;
  /** The object that it is about; absent: the platform itself. */
  readonly about: Workload | Manifest | undefined;
  /** The path to the field that it is about in that object. */
  readonly field?: FieldPointer | undefined;
  /** For a remark about a platform: a workload of the input to point at. */
  readonly example?: Workload | undefined;
  readonly message: string;
  readonly fix: string;
}

/** Manifests that demonstrate a rule; the tests run both. */
export interface RuleExample {
  /** YAML of one or more documents. */
  readonly yaml: string;
  /** Platforms to check against; absent: `gke`. */
  readonly platforms?: readonly string[];
}

/** One rule of the audit: the check, and everything that its page in the documentation says. */
export interface Rule {
  readonly id: string;
  /** The most severe level that its findings may have. */
  readonly severity: Severity;
  /** What is found: one sentence without a period. */
  readonly title: string;
  readonly why: string;
  readonly fix: string;
  readonly whenNotToUse: string;
  /** Must be flagged. */
  readonly bad: RuleExample;
  /** Must not be flagged. */
  readonly good: RuleExample;
  check(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Remark[];
}

/**
 * Kinds that keep a number of pods running. Jobs and bare pods do not, and a DaemonSet has one per
 * node.
 */
const replicated = new Set([
  ...["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"],
  ...["Rollout", "CloneSet"],
]);

/** A custom resource does as well if it says how many. */
export function isReplicated({ kind, manifest }: Workload): boolean {
  const written = valueAt(manifest.json, ["spec", "replicas"]);
  const isCustom = manifest.templatePath !== undefined;
  return replicated.has(kind) || (isCustom && wholeNumberOf(written) !== undefined);
}

/** The workloads that a Spot rule applies to: all except those that are kept off Spot nodes. */
export function spotWorkloads(fleet: AuditedFleet): readonly Workload[] {
  return [...fleet.onSpot];
}

export function asFinding(rule: Rule, remark: Remark): Finding {
  const { about } = remark;
  const place = about ?? remark.example;
  const manifest = place !== undefined && "manifest" in place ? place.manifest : place;
  return {
    rule: rule.id,
    severity: remark.severity,
    platform: remark.platform ?? null,
    object: about === undefined ? `Platform ${remark.platform}` : nameOfObject(about),
    message: remark.message,
    fix: remark.fix,
    file: manifest?.file ?? null,
    line: manifest?.line ?? null,
  };
}

/** The line of the field that a remark is about, if it is in a file; the file is read again. */
export function fieldLineOf({ about, field }: Remark): number | undefined {
  const manifest = about !== undefined && "manifest" in about ? about.manifest : about;
  return field === undefined ? undefined : manifest?.lineOf?.(field);
}

/** The path to a field of a workload's pods. */
export function podField({ manifest }: Workload, ...path: FieldPointer): FieldPointer {
  return [...(workloadKindOf(manifest)?.templatePath ?? []), "spec", ...path];
}

/** The path to a field of a container, which may be a sidecar; undefined if there is none. */
export function containerField(
  workload: Workload,
  container: string,
  ...path: FieldPointer
): FieldPointer | undefined {
  for (const list of ["containers", "initContainers"]) {
    const own = podField(workload, list);
    const found = listOf(valueAt(workload.manifest.json, own.map(String)));
    const place = found.findIndex((one) => fieldsOf(one).name === container);
    if (place >= 0) return [...own, place, ...path];
  }
  return undefined;
}

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
  /** Findings that an annotation `lastcall.dev/audit-ignore` ignores, with its reason. */
  readonly ignored: readonly (Finding & { readonly reason: string })[];
  /** Findings that are in the baseline already. */
  readonly known: readonly Finding[];
  /** Objects whose pods the input does not show. */
  readonly notJudged: readonly ReportedObject[];
  /** What a reader should know about how the input was checked, one sentence each. */
  readonly notes: readonly string[];
  readonly summary: {
    readonly workloads: number;
    /** How many of them `--scope` leaves out. */
    readonly outOfScope: number;
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
  /** Seconds by platform; platforms whose nodes the workload cannot be placed on are left out. */
  readonly granted: Readonly<Record<string, number>>;
  readonly cut: Readonly<Record<string, boolean>>;
  /** Whether its pods may be placed on Spot nodes: only there, there as well, or never. */
  readonly spot: Landing;
  /** Whether `--scope` leaves it out: it may be placed on Spot nodes, and was not judged. */
  readonly outOfScope: boolean;
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

/** Rule, platform and object identify a finding, because lines and files move. */
export function isKnown(baseline: Baseline, finding: Finding): boolean {
  return baseline.keys.has(keyOf(finding.rule, finding.platform ?? undefined, finding.object));
}

function keyOf(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts.map((part) => part ?? ""));
}
