import type { ShutdownGroup } from "../core/drain-plan/grace-budget.ts";
import { nameOf } from "../core/json/json-field.ts";
import { LastcallError } from "../errors.ts";
import { type AuditedFleet, canReach, graceOn, readFleet } from "./fleet.ts";
import { landingOf } from "./landing.ts";
import { isAutopilot, platformsOfNodes } from "./objects/audit-node.ts";
import { faultyIgnores, ignoredRules } from "./objects/ignore.ts";
import {
  knownTemplatePaths,
  type Manifest,
  type ManifestSource,
  placeOf,
  readManifest,
  type TemplatePath,
} from "./objects/manifest.ts";
import { isMisnamed, type Workload, workloadKindOf } from "./objects/workload.ts";
import { assumedPlatforms, defaultPlatformNames, type Platform } from "./platform.ts";
import { type AuditReport, type Baseline, isKnown, type ReportedWorkload } from "./report.ts";
import { asFinding, type Finding, type Remark, type Rule, severities } from "./rule.ts";
import { rankOf, ruleList } from "./rule-list.ts";

export interface AuditOptions {
  readonly sources: readonly ManifestSource[];
  /** Empty: those of the nodes in the input, and where there are none the common ones. */
  readonly platforms: readonly Platform[];
  /** The namespace of objects that name none; absent: `default`. */
  readonly namespace?: string | undefined;
  /** Budgets read from kubelets, by node name. */
  readonly readBudgets?: ReadonlyMap<string, readonly ShutdownGroup[]> | undefined;
  readonly baseline?: Baseline | undefined;
  /** Custom resources that make pods, beside those that are known. */
  readonly templatePaths?: readonly TemplatePath[] | undefined;
}

type Input = Pick<AuditOptions, "sources" | "namespace" | "templatePaths">;

/**
 * Judges workloads: what each asks for, what each platform gives it, and what else speaks against
 * Spot nodes. Pure; the same input gives the same report. Throws INPUT_INVALID with one line a
 * problem where an object cannot be read.
 */
export function audit(options: AuditOptions): AuditReport {
  const fleet = fleetOf(options);
  if (fleet.problems.length > 0) {
    throw new LastcallError("INPUT_INVALID", fleet.problems.join("\n"));
  }
  const notes = notesOn(fleet, options);
  return { ...auditFleet(fleet, choosePlatforms(fleet, options), options.baseline), notes };
}

/** Why the objects cannot be judged, one sentence each; none where they can. */
export function problemsOf(options: Input): readonly string[] {
  return fleetOf(options).problems;
}

function fleetOf({ sources, namespace = "default", templatePaths = [] }: Input): AuditedFleet {
  const paths = [...templatePaths, ...knownTemplatePaths];
  return readFleet(sources.map((source) => readManifest(source, namespace, paths)));
}

/** Judges what was read before; what could not be read is passed over, and there are no notes. */
export function auditFleet(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
  baseline?: Baseline,
): AuditReport {
  const judged = judge(fleet, platforms);
  const open = judged.filter((one) => one.reason === undefined).map((one) => one.finding);
  const known = open.filter((finding) => baseline !== undefined && isKnown(baseline, finding));
  const knownOnes = new Set(known);
  const findings = open.filter((finding) => !knownOnes.has(finding));
  const workloads = fleet.workloads.map((workload) =>
    reportWorkload(fleet, { workload, platforms }),
  );
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "AuditReport",
    platforms: platforms.map(({ name, groups, source }) => ({ name, groups, source })),
    workloads,
    findings,
    ignored: judged.flatMap(({ finding, reason }) =>
      reason === undefined ? [] : [{ ...finding, reason }],
    ),
    known,
    notJudged: fleet.notJudged.map(({ manifest, reason }) => ({ ...placed(manifest), reason })),
    notes: [],
    summary: {
      workloads: workloads.length,
      cut: Object.fromEntries(platforms.map(({ name }) => [name, countCut(workloads, name)])),
      findings: countFindings(findings),
    },
  };
}

function choosePlatforms(fleet: AuditedFleet, options: AuditOptions): readonly Platform[] {
  const named = new Map(options.platforms.map((platform) => [platform.name, platform]));
  if (named.size > 0) return [...named.values()];
  const seen = platformsOfNodes(fleet.nodes, options.readBudgets ?? new Map());
  return seen.length > 0 ? seen : assumedPlatforms();
}

interface Judged {
  readonly finding: Finding;
  /** Why it is set aside, where an annotation says so. */
  readonly reason: string | undefined;
}

function judge(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Judged[] {
  const judged = ruleList.flatMap((rule) =>
    rule.check(fleet, platforms).map((remark) => ({
      finding: asFinding(rule, remark),
      reason: reasonToIgnore(rule, remark),
    })),
  );
  return judged.sort((a, b) => inOrder(a.finding, b.finding));
}

function reasonToIgnore(rule: Rule, { about }: Remark): string | undefined {
  return about === undefined ? undefined : ignoredRules(about).get(rule.id);
}

/** The worst first; within a rule as the input has them (the sort is stable). */
export function inOrder(
  a: Pick<Finding, "rule" | "severity">,
  b: Pick<Finding, "rule" | "severity">,
): number {
  const bySeverity = severities.indexOf(a.severity) - severities.indexOf(b.severity);
  return bySeverity === 0 ? rankOf(a.rule) - rankOf(b.rule) : bySeverity;
}

function reportWorkload(
  fleet: AuditedFleet,
  one: { readonly workload: Workload; readonly platforms: readonly Platform[] },
): ReportedWorkload {
  const { workload } = one;
  const reached = one.platforms.filter((platform) => canReach(workload, platform));
  const grants = reached.map(({ name, ...platform }) => ({
    name,
    grant: graceOn({ name, ...platform }, workload),
  }));
  return {
    ...placed({ ...workload.manifest, kind: workload.kind, name: workload.name }),
    priority: workload.priority,
    wantedGraceSeconds: workload.wantedGraceSeconds,
    graceSource: workload.graceSource,
    granted: Object.fromEntries(grants.map(({ name, grant }) => [name, grant.grantedSeconds])),
    cut: Object.fromEntries(grants.map(({ name, grant }) => [name, grant.cut])),
    spot: fleet.onSpot.has(workload) ? landingOf(workload.template) : "Never",
  };
}

function placed({ kind, namespace, name, file, line }: Manifest) {
  return { kind, namespace, name, file: file ?? null, line: line ?? null };
}

function countCut(workloads: readonly ReportedWorkload[], platform: string): number {
  return workloads.filter((workload) => workload.cut[platform] === true).length;
}

function countFindings(findings: readonly Finding[]): AuditReport["summary"]["findings"] {
  const count = (severity: Finding["severity"]) =>
    findings.filter((finding) => finding.severity === severity).length;
  return { error: count("error"), warning: count("warning"), info: count("info") };
}

function notesOn(fleet: AuditedFleet, options: AuditOptions): readonly string[] {
  const notes: string[] = [];
  if (options.platforms.length === 0 && fleet.nodes.length === 0) {
    notes.push(
      `No platform was named and the input holds no nodes: judged against ${defaultPlatformNames.join(", ")}`,
    );
  }
  const autopilot = fleet.nodes.filter((node) => isAutopilot(node.name)).length;
  if (autopilot > 0 && options.platforms.length === 0) {
    notes.push(
      `${autopilot} node${autopilot === 1 ? " is" : "s are"} of GKE Autopilot, where the kubelet's setting cannot be read: GKE's default was taken`,
    );
  }
  const classes = fleet.workloads.flatMap((one) => one.unknownPriorityClass ?? []);
  for (const name of [...new Set(classes)].sort()) {
    notes.push(`The input holds no PriorityClass ${name}: its pods were judged at priority 0`);
  }
  for (const manifest of fleet.manifests.filter(isMisnamed)) {
    const where = nameOf(manifest.apiVersion);
    notes.push(
      `${placeOf(manifest)} was not judged: Kubernetes has no ${manifest.kind} in ${where}`,
    );
  }
  return [...notes, ...notesOnIgnores(fleet)];
}

/** Of workloads, and of the Services and budgets beside them; what else makes pods is theirs. */
function notesOnIgnores({ workloads, manifests }: AuditedFleet): readonly string[] {
  const others = manifests.filter((manifest) => workloadKindOf(manifest) === undefined);
  return [...workloads, ...others].flatMap((about) => {
    const place = placeOf("manifest" in about ? about.manifest : about);
    return faultyIgnores(about).map((fault) => `The ignore annotation of ${place} ${fault}`);
  });
}
