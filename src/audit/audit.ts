import { isGraceful, type ShutdownGroup } from "../core/drain-plan/drain-order.ts";
import { nameOf } from "../core/json/json-field.ts";
import { counted } from "../core/reason/counted.ts";
import { LastcallError } from "../errors.ts";
import { type AuditedFleet, canReach, graceOn, inScope, landingOf, readFleet } from "./fleet.ts";
import { isAutopilot, platformsOfNodes } from "./objects/audit-node.ts";
import {
  knownTemplatePaths,
  type Manifest,
  type ManifestSource,
  placeOf,
  readManifest,
  type TemplatePath,
} from "./objects/manifest.ts";
import type { SpotScope } from "./objects/spot-scope.ts";
import { isMisnamed, type Workload, workloadKindOf } from "./objects/workload.ts";
import { assumedPlatforms, defaultPlatformNames, type Platform } from "./platform.ts";
import {
  type AuditReport,
  asFinding,
  type Baseline,
  type Finding,
  fieldLineOf,
  isKnown,
  type Remark,
  type ReportedWorkload,
  type Rule,
  type Severity,
  severities,
} from "./report.ts";
import { faultyIgnores, ignoredRules, rankOf, ruleList } from "./rule-list.ts";

export interface AuditOptions {
  readonly sources: readonly ManifestSource[];
  /** Empty: those of the nodes in the input, or without nodes the most common ones. */
  readonly platforms: readonly Platform[];
  /**
   * Default: Possible. A Spot pool of GKE has no taint, so that a workload which names no nodes may
   * run there, and a check must not be green because it looked at nothing.
   */
  readonly scope?: SpotScope | undefined;
  /** The namespace of objects that set none; absent: `default`. */
  readonly namespace?: string | undefined;
  /** Budgets read from kubelets, by node name. */
  readonly readBudgets?: ReadonlyMap<string, readonly ShutdownGroup[]> | undefined;
  readonly baseline?: Baseline | undefined;
  /** Custom resources that create pods, in addition to the known ones. */
  readonly templatePaths?: readonly TemplatePath[] | undefined;
}

type AuditedSources = Pick<AuditOptions, "sources" | "namespace" | "templatePaths">;

/**
 * Audits workloads: the grace that each asks for, what each platform gives it, and what else makes
 * it unfit for Spot nodes. Pure; the same input gives the same report. Throws INPUT_INVALID with
 * one line per problem if an object cannot be read.
 */
export function audit(options: AuditOptions): AuditReport {
  const fleet = fleetOf(options);
  if (fleet.problems.length > 0) {
    throw new LastcallError("INPUT_INVALID", fleet.problems.join("\n"));
  }
  const { baseline, scope } = options;
  const report = auditFleet(fleet, choosePlatforms(fleet, options), { baseline, scope });
  return { ...report, notes: [...notesOn(fleet, options), ...notesOnScope(fleet, options)] };
}

/**
 * What the scope leaves out; and if nothing says that there are Spot nodes, how to leave out the
 * workloads that do not name any.
 */
function notesOnScope(fleet: AuditedFleet, { scope, platforms }: AuditOptions): readonly string[] {
  const [all, named] = [fleet.onSpot.size, inScope(fleet, "Named").onSpot.size];
  const isMeant = platforms.length > 0 || fleet.nodes.some((node) => node.spot);
  if (all === named || (scope === undefined && isMeant) || scope === "Possible") return [];
  const count = `${named === 0 ? "None" : named} of ${counted(all, "workload")}`;
  const names = `${count} name${named > 1 ? "" : "s"} Spot nodes`;
  return scope === "Named"
    ? [`${names}, and only such are judged; --scope Possible judges all`]
    : [`${names}; for a cluster with other nodes, too, --scope Named judges only such`];
}

/** Why the objects cannot be audited, one sentence each; empty if they can. */
export function problemsOf(options: AuditedSources): readonly string[] {
  return fleetOf(options).problems;
}

function fleetOf({
  sources,
  namespace = "default",
  templatePaths = [],
}: AuditedSources): AuditedFleet {
  const paths = [...templatePaths, ...knownTemplatePaths];
  return readFleet(sources.map((source) => readManifest(source, namespace, paths)));
}

/**
 * Audits objects that have been read already; what could not be read is skipped, and there are no
 * notes.
 */
export function auditFleet(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
  { baseline, scope = "Possible" }: Pick<AuditOptions, "baseline" | "scope"> = {},
): AuditReport {
  const scoped = inScope(fleet, scope);
  const judged = judge(scoped, platforms);
  const open = judged.filter((one) => one.reason === undefined).map(placedAtField);
  const known = open.filter((finding) => baseline !== undefined && isKnown(baseline, finding));
  const knownOnes = new Set(known);
  const findings = open.filter((finding) => !knownOnes.has(finding));
  const workloads = fleet.workloads.map((workload) =>
    reportWorkload(fleet, { workload, platforms, scoped }),
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
      outOfScope: workloads.filter((one) => one.outOfScope).length,
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
  readonly remark: Remark;
  readonly finding: Finding;
  /** Why it is ignored, if an annotation says so. */
  readonly reason: string | undefined;
}

function judge(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Judged[] {
  const judged = ruleList.flatMap((rule) =>
    rule.check(fleet, platforms).map((remark) => ({
      remark,
      finding: asFinding(rule, remark),
      reason: reasonToIgnore(rule, remark),
    })),
  );
  return judged.sort((a, b) => inOrder(a.finding, b.finding));
}

/** How many findings have the line of their field: more are read by nobody, and cost seconds. */
const mostPlaced = 500;

function placedAtField({ finding, remark }: Judged, place: number): Finding {
  const fieldLine = place < mostPlaced ? fieldLineOf(remark) : undefined;
  return fieldLine === undefined ? finding : { ...finding, fieldLine };
}

function reasonToIgnore(rule: Rule, { about }: Remark): string | undefined {
  return about === undefined ? undefined : ignoredRules(about).get(rule.id);
}

/** The worst first; within a rule in the order of the input (the sort is stable). */
function inOrder(
  a: Pick<Finding, "rule" | "severity">,
  b: Pick<Finding, "rule" | "severity">,
): number {
  const bySeverity = severities.indexOf(a.severity) - severities.indexOf(b.severity);
  return bySeverity === 0 ? rankOf(a.rule) - rankOf(b.rule) : bySeverity;
}

function reportWorkload(
  fleet: AuditedFleet,
  one: {
    readonly workload: Workload;
    readonly platforms: readonly Platform[];
    /** The fleet with what is in the scope alone. */
    readonly scoped: AuditedFleet;
  },
): ReportedWorkload {
  const { workload, scoped } = one;
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
    outOfScope: fleet.onSpot.has(workload) && !scoped.onSpot.has(workload),
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
      `No platform was given and the input contains no nodes: judged against ${defaultPlatformNames.join(", ")}`,
    );
  }
  const autopilot = fleet.nodes.filter((node) => isAutopilot(node.name)).length;
  if (autopilot > 0 && options.platforms.length === 0) {
    notes.push(
      `${autopilot} node${autopilot === 1 ? " is" : "s are"} on GKE Autopilot, where the kubelet's setting cannot be read: GKE's default was used`,
    );
  }
  const classes = fleet.workloads.flatMap((one) => one.unknownPriorityClass ?? []);
  for (const name of [...new Set(classes)].sort()) {
    notes.push(`The input contains no PriorityClass ${name}: its pods were judged at priority 0`);
  }
  for (const manifest of fleet.manifests.filter(isMisnamed)) {
    const where = nameOf(manifest.apiVersion);
    notes.push(
      `${placeOf(manifest)} was not judged: Kubernetes has no ${manifest.kind} in ${where}`,
    );
  }
  return [...notes, ...notesOnIgnores(fleet)];
}

/**
 * For workloads, and for the Services and budgets of their namespaces; everything else that creates
 * pods belongs to a workload.
 */
function notesOnIgnores({ workloads, manifests }: AuditedFleet): readonly string[] {
  const others = manifests.filter((manifest) => workloadKindOf(manifest) === undefined);
  return [...workloads, ...others].flatMap((about) => {
    const place = placeOf("manifest" in about ? about.manifest : about);
    return faultyIgnores(about).map((fault) => `The ignore annotation of ${place} ${fault}`);
  });
}

/** The summary of a live audit in one line, for a status condition. */
export interface SpotReadiness {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "NothingFound" | "FindingsOpen" | "NoWorkloads";
  readonly message: string;
}

export interface RuleCount {
  readonly rule: string;
  readonly severity: Severity;
  readonly count: number;
}

/** The numbers of reports; sums over the namespaces of a cluster can be added. */
export interface ReadinessSum {
  /** Workloads that can be placed on Spot nodes. */
  readonly workloads: number;
  readonly platforms: AuditReport["platforms"];
  /** By platform: how many workloads are checked against it, and how many of them are cut. */
  readonly judged: Readonly<Record<string, number>>;
  readonly cut: Readonly<Record<string, number>>;
  /** Open findings by rule and severity; rules without findings are not listed. */
  readonly counts: readonly RuleCount[];
  /** The first of the most severe findings. */
  readonly worst: Finding | undefined;
}

export function sumUp(report: AuditReport): ReadinessSum {
  const workloads = report.workloads.filter((one) => one.spot !== "Never");
  const tally = (on: (one: (typeof workloads)[number], name: string) => boolean) =>
    Object.fromEntries(
      report.platforms.map(({ name }) => [name, workloads.filter((one) => on(one, name)).length]),
    );
  const groups = Map.groupBy(report.findings, keyOf);
  return {
    workloads: workloads.length,
    platforms: report.platforms,
    judged: tally((one, name) => name in one.granted),
    cut: tally((one, name) => one.cut[name] === true),
    counts: [...groups.values()].flatMap((findings) =>
      findings
        .slice(0, 1)
        .map(({ rule, severity }) => ({ rule, severity, count: findings.length })),
    ),
    worst: report.findings.find((one) => one.severity !== "info" && !isOfPlatform(one)),
  };
}

/**
 * Adds two sums over different namespaces of one cluster; a finding about a platform counts once.
 */
export function addUp(a: ReadinessSum, b: ReadinessSum): ReadinessSum {
  const groups = Map.groupBy([...a.counts, ...b.counts], keyOf);
  const counts = [...groups.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const sizes = same.map(({ count }) => count);
    const aboutPlatforms = first.rule === "no-graceful-shutdown";
    const count = aboutPlatforms ? Math.max(...sizes) : sizes.reduce((sum, one) => sum + one, 0);
    return [{ ...first, count }];
  });
  return {
    workloads: a.workloads + b.workloads,
    platforms: a.platforms,
    judged: added(a.judged, b.judged),
    cut: added(a.cut, b.cut),
    counts,
    worst: worseOf(a.worst, b.worst),
  };
}

/** Warnings count as open, information does not. */
export function spotReadiness(sum: ReadinessSum): SpotReadiness {
  if (sum.workloads === 0) {
    return { status: "Unknown", reason: "NoWorkloads", message: "No workload can be judged." };
  }
  const cuts = sum.platforms.flatMap((platform) => cutSentence(sum, platform));
  const open = sum.counts
    .filter((one) => one.severity !== "info")
    .sort((a, b) => inOrder(a, b))
    .map((one) => `${one.count} ${one.rule}`);
  if (open.length === 0) {
    const clean = `No findings for ${counted(sum.workloads, "workload")} on these nodes`;
    return { status: "True", reason: "NothingFound", message: sentence([clean, ...cuts]) };
  }
  const { worst } = sum;
  const example = worst === undefined ? [] : [`such as ${worst.object}: ${worst.message}`];
  const message = sentence([...cuts, `found: ${open.join(", ")}`, ...example]);
  return { status: "False", reason: "FindingsOpen", message };
}

/** `72 of 84 workloads ask for more than the 15 s that gke gives`, or nothing if none does. */
function cutSentence(sum: ReadinessSum, platform: ReadinessSum["platforms"][number]): string[] {
  const { name, groups } = platform;
  const cut = sum.cut[name] ?? 0;
  if (cut === 0) return [];
  const regular = groups.findLast((group) => group.priority <= 0) ?? groups[0];
  const what = isGraceful(groups)
    ? `${cut === 1 ? "asks" : "ask"} for more than the ${regular?.seconds ?? 0} s that ${name} gives`
    : `${cut === 1 ? "gets" : "get"} no time on ${name}`;
  return [`${cut} of ${counted(sum.judged[name] ?? 0, "workload")} ${what}`];
}

function sentence(parts: readonly string[]): string {
  return `${parts.join("; ")}.`;
}

function keyOf({ rule, severity }: Pick<Finding, "rule" | "severity">): string {
  return `${rule}/${severity}`;
}

function isOfPlatform(finding: Finding): boolean {
  return finding.object === `Platform ${finding.platform}`;
}

function added(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]));
}

function worseOf(a: Finding | undefined, b: Finding | undefined): Finding | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return inOrder(b, a) < 0 ? b : a;
}
