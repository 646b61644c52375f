import { isGraceful } from "../core/drain-plan/drain-order.ts";
import { capitalized, counted, someOf, wasOrWere } from "../core/reason/counted.ts";
import { formatDuration, seconds } from "../core/time/time.ts";
import { nameOfObject } from "./objects/manifest.ts";
import {
  type AuditReport,
  type ReportedWorkload,
  type Rule,
  type Severity,
  severities,
} from "./report.ts";
import { rankOf, ruleList } from "./rule-list.ts";
import { type ToldFinding, toldFindings } from "./told-finding.ts";

export interface TableOptions {
  readonly colour: "On" | "Off";
  /** The most workloads and findings to show; absent: all. The counts always include all. */
  readonly rows?: number | undefined;
}

type Paint = (tone: TextTone, text: string) => string;

type TextTone = "bad" | "warn" | "good" | "dim" | "strong";

const ansiCodes: Readonly<Record<TextTone, string>> = {
  bad: "31",
  warn: "33",
  good: "32",
  dim: "2",
  strong: "1",
};

const severityTone: Readonly<Record<Severity, TextTone>> = {
  error: "bad",
  warning: "warn",
  info: "dim",
};

/**
 * The report for people: the grace that each workload gets on each platform, then what to do about
 * it.
 */
export function auditTable(report: AuditReport, options: TableOptions): string {
  const paint: Paint = (tone, text) =>
    options.colour === "On" ? `\u001b[${ansiCodes[tone]}m${text}\u001b[0m` : text;
  const rows = options.rows ?? Number.POSITIVE_INFINITY;
  const parts = [graceTable(report, { paint, rows }), ...findingLines(report, { paint, rows })];
  return `${[...parts, closing(report, paint)].join("\n")}\n`;
}

interface Style {
  readonly paint: Paint;
  readonly rows: number;
}

interface TextCell {
  readonly text: string;
  readonly tone?: TextTone | undefined;
}

/** The workloads that lose most come first, so that the first screen shows what matters. */
function graceTable(report: AuditReport, { paint, rows }: Style): string {
  if (report.workloads.length === 0) return "No workloads.";
  const names = report.platforms.map((platform) => platform.name);
  const head = ["WORKLOAD", "ASKS", ...names].map((text): TextCell => ({ text, tone: "strong" }));
  const budgets = ["budget of a regular pod", "", ...report.platforms.map(budgetOf)];
  const ordered = report.workloads.toSorted((a, b) => lossOf(b) - lossOf(a));
  const shown = ordered.slice(0, rows).map((workload) => workloadRow(workload, names));
  const table = layOut(
    [head, budgets.map((text): TextCell => ({ text, tone: "dim" })), ...shown],
    paint,
  );
  const more = ordered.length - shown.length;
  return more > 0
    ? `${table}\n${paint("dim", `… and ${counted(more, "more workload")} (-o json has all)`)}`
    : table;
}

function budgetOf({ groups }: AuditReport["platforms"][number]): string {
  if (!isGraceful(groups)) return "none";
  const regular = groups.findLast((group) => group.priority <= 0) ?? groups[0];
  return formatDuration(seconds(regular?.seconds ?? 0));
}

/** Seconds lost on the worst platform; a grace period that was set on purpose weighs more. */
function lossOf(workload: ReportedWorkload): number {
  const lost = Object.entries(workload.granted).map(([name, grantedSeconds]) =>
    workload.cut[name] === true ? workload.wantedGraceSeconds - grantedSeconds : 0,
  );
  return Math.max(0, ...lost) * (workload.graceSource === "Set" ? 1000 : 1);
}

function workloadRow(
  workload: ReportedWorkload,
  platforms: readonly string[],
): readonly TextCell[] {
  const isSet = workload.graceSource === "Set";
  const asks = `${workload.wantedGraceSeconds}s${isSet ? "" : " (default)"}`;
  const never = workload.spot === "Never" || workload.outOfScope;
  const grants = platforms.map((name): TextCell => {
    const grantedSeconds = workload.granted[name];
    if (grantedSeconds === undefined) return { text: "-", tone: "dim" };
    if (workload.cut[name] !== true)
      return { text: `${grantedSeconds}s`, tone: never ? "dim" : "good" };
    return { text: `${grantedSeconds}s cut`, tone: never ? "dim" : isSet ? "bad" : "warn" };
  });
  const why = workload.outOfScope ? "out of scope" : "not on Spot";
  const note = never ? [{ text: why, tone: "dim" as const }] : [];
  return [{ text: nameOfObject(workload) }, { text: asks }, ...grants, ...note];
}

function layOut(rows: readonly (readonly TextCell[])[], paint: Paint): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.text.length);
    });
  }
  const lines = rows.map((row) => {
    const cells = row.map((cell, column) => {
      const padded = column === row.length - 1 ? cell.text : cell.text.padEnd(widths[column] ?? 0);
      return cell.tone === undefined ? padded : paint(cell.tone, padded);
    });
    return cells.join("  ");
  });
  return lines.join("\n");
}

/** One block per rule and platform: what it is, where it is, and what to do about each. */
function findingLines(report: AuditReport, { paint, rows }: Style): readonly string[] {
  const blocks = Map.groupBy(
    toldFindings(report.findings),
    (one) => `${one.severity} ${one.rule} ${one.platforms.join()}`,
  );
  let left = rows;
  return [...blocks.values()].flatMap((findings): readonly string[] => {
    const [first] = findings;
    if (first === undefined || left <= 0) return [];
    const platform = first.platforms.length === 0 ? "" : ` on ${first.platforms.join(", ")}`;
    const title = `\n${paint(severityTone[first.severity], first.severity)} ${paint("strong", first.rule)}${platform} (${findings.length})`;
    const shown = findings.slice(0, Math.min(left, Number.isFinite(rows) ? 3 : left));
    const more = findings.length - shown.length;
    const rest = more > 0 ? [paint("dim", `  … and ${more} more`)] : [];
    const byFix = [...Map.groupBy(shown, ({ fix }) => fix)];
    left -= shown.length + byFix.length + 1;
    const lines = byFix.flatMap(([fix, alike], place) => [
      ...alike.map(findingLine),
      ...(place === byFix.length - 1 ? rest : []),
      paint("dim", `  fix: ${fix}`),
    ]);
    return [title, ...lines];
  });
}

function findingLine(finding: ToldFinding): string {
  const own = lineOf(finding);
  const line = own === null ? "" : `:${own}`;
  const place = finding.file === null ? "" : ` (${finding.file}${line})`;
  return `  ${finding.object}${place}: ${finding.message}`;
}

/** Of the field, or else of its object. */
function lineOf({ line, fieldLine }: ToldFinding): number | null {
  return fieldLine ?? line;
}

function closing(report: AuditReport, paint: Paint): string {
  const { summary } = report;
  const told = toldFindings(report.findings);
  const counts = severities.map((severity) => {
    const count = told.filter((finding) => finding.severity === severity).length;
    const text = `${count} ${severity}${count === 1 || severity === "info" ? "" : "s"}`;
    return count === 0 ? text : paint(severityTone[severity], text);
  });
  const aside = [
    ...(report.ignored.length > 0 ? [`${report.ignored.length} ignored`] : []),
    ...(report.known.length > 0 ? [`${report.known.length} in the baseline`] : []),
  ];
  const outside = summary.outOfScope === 0 ? "" : ` (${summary.outOfScope} out of scope)`;
  const workloads = counted(summary.workloads, "workload") + outside;
  const lines = ["", `${workloads}: ${[...counts, ...aside].join(", ")}`, ...unseenLines(report)];
  return lines.join("\n");
}

function unseenLines({ notJudged }: AuditReport): readonly string[] {
  const because = (reason: string) => notJudged.filter((one) => one.reason === reason);
  const custom = because("CustomResource");
  const fixed = because("StaticPod");
  const kinds = [...new Set(custom.map((one) => one.kind))].sort().join(", ");
  return [
    ...(custom.length > 0
      ? [
          `Not judged: ${counted(custom.length, "custom resource")} (${kinds}), because the input does not show the pods that they create`,
        ]
      : []),
    ...(fixed.length > 0
      ? [`Not judged: ${counted(fixed.length, "static pod")}, which only a kubelet terminates`]
      : []),
  ];
}

const sarifLevels: Readonly<Record<Severity, string>> = {
  error: "error",
  warning: "warning",
  info: "note",
};

/** What a SARIF log says of the tool. */
export interface SarifTool {
  readonly version: string;
  /** Where the folder `docs` is published; absent: rules have no `helpUri`. */
  readonly docsUrl?: string | undefined;
}

/**
 * The report as a SARIF 2.1.0 log with one run. A finding that an annotation ignores is a result
 * suppressed in the source, one of the baseline a result suppressed externally. Source: OASIS SARIF
 * 2.1.0; GitHub's notes on what code scanning reads of it.
 */
export function sarifLog(report: AuditReport, { version, docsUrl }: SarifTool): unknown {
  const open = toldFindings(report.findings).map((finding) => resultOf(finding));
  const ignored = toldFindings(report.ignored).map((finding) => ({
    ...resultOf(finding),
    suppressions: [{ kind: "inSource", justification: finding.reason }],
  }));
  const known = toldFindings(report.known).map((finding) => ({
    ...resultOf(finding),
    suppressions: [{ kind: "external", justification: "Accepted in the baseline" }],
  }));
  const rules = ruleList.map((rule) => descriptorOf(rule, docsUrl));
  const driver = { name: "lastcall", version, rules };
  const outside = outOfScope(report);
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        ...{ tool: { driver }, columnKind: "utf16CodeUnits" },
        invocations: [
          { executionSuccessful: true, toolExecutionNotifications: notificationsOf(report) },
        ],
        results: [...open, ...ignored, ...known],
        ...(outside.length > 0 && { properties: { outOfScope: outside } }),
      },
    ],
  };
}

/** How the input was read and judged: SARIF, 3.20.21. */
function notificationsOf({ notes }: AuditReport): readonly unknown[] {
  return notes.map((text) => ({ level: "note", message: { text } }));
}

/** The names of the workloads that `--scope` leaves out. */
function outOfScope({ workloads }: AuditReport): readonly string[] {
  return workloads.filter((one) => one.outOfScope).map(nameOfObject);
}

function descriptorOf(rule: Rule, docsUrl: string | undefined): unknown {
  const help = `${rule.why}\n\nFix: ${rule.fix}\n\nWhen not to use it: ${rule.whenNotToUse}`;
  return {
    id: rule.id,
    shortDescription: { text: `${rule.title.charAt(0).toUpperCase()}${rule.title.slice(1)}` },
    fullDescription: { text: rule.why },
    help: { text: help, markdown: help },
    ...(docsUrl && { helpUri: `${docsUrl.replace(/\/+$/, "")}/audit/${rule.id}.md` }),
    defaultConfiguration: { level: sarifLevels[rule.severity] },
    properties: { tags: ["kubernetes", "spot"] },
  };
}

function resultOf(finding: ToldFinding): Readonly<Record<string, unknown>> {
  const platforms = finding.platforms.join(", ");
  const platform = platforms === "" ? "" : ` [${platforms}]`;
  return {
    ruleId: finding.rule,
    ruleIndex: rankOf(finding.rule),
    level: sarifLevels[finding.severity],
    message: { text: `${finding.object}${platform}: ${finding.message}. ${finding.fix}.` },
    locations: locationsOf(finding),
    partialFingerprints: {
      "lastcallFinding/v1": `${finding.rule}|${finding.platforms.join()}|${finding.object}`,
    },
  };
}

/**
 * The file name for standard input: GitHub accepts no log with a result without a file. Its code
 * scanning shows no code beside such a result, as for any file outside of the repository.
 */
const standardInputUri = "stdin";

/** A live cluster has no file to point at, so the object is named. */
function locationsOf(finding: ToldFinding): readonly unknown[] {
  const logicalLocations = [{ fullyQualifiedName: finding.object, kind: "resource" }];
  if (finding.file === null) return [{ logicalLocations }];
  const artifactLocation = { uri: uriOf(finding.file) };
  const region = { startLine: lineOf(finding) ?? 1 };
  return [{ physicalLocation: { artifactLocation, region }, logicalLocations }];
}

function uriOf(file: string): string {
  if (file === "-") return standardInputUri;
  const path = file.replaceAll("\\", "/").replace(/^\.\//, "");
  return path.split("/").map(encodeURIComponent).join("/");
}

const githubCommands: Readonly<Record<Severity, string>> = {
  error: "error",
  warning: "warning",
  info: "notice",
};

/**
 * Findings as GitHub workflow commands, one per line: annotations on the changed files of a pull
 * request. Source: GitHub Actions, "Workflow commands", with the escapes of its toolkit.
 */
export function githubAnnotations(report: AuditReport): string {
  const lines = toldFindings(report.findings).map((finding) => {
    const line = lineOf(finding);
    const place = [
      ...(finding.file === null || finding.file === "-"
        ? []
        : [`file=${githubProperty(finding.file)}`]),
      ...(finding.file === null || line === null ? [] : [`line=${line}`]),
      `title=${githubProperty(finding.rule)}`,
    ];
    const text = githubData(`${finding.object}: ${finding.message}. ${finding.fix}`);
    return `::${githubCommands[finding.severity]} ${place.join(",")}::${text}\n`;
  });
  return [...lines, ...outsideNotice(report)].join("");
}

/** How many workloads a notice names: GitHub shortens long ones. */
const mostNamed = 20;

/** One for all: a step of a workflow may have ten notices. */
function outsideNotice(report: AuditReport): readonly string[] {
  const names = outOfScope(report);
  if (names.length === 0) return [];
  const isOne = names.length === 1;
  const count = capitalized(someOf(names.length, report.summary.workloads, "workload"));
  const why = `${wasOrWere(names.length)} not judged, because ${isOne ? "it names" : "they name"} no Spot nodes`;
  const more = names.length - mostNamed;
  const rest = more > 0 ? [`${more} more`] : [];
  const named = [...names.slice(0, mostNamed), ...rest].join(", ");
  const text = `${count} ${why}: ${named}. Judge all with --scope Possible`;
  return [`::notice title=out-of-scope::${githubData(text)}\n`];
}

function githubData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function githubProperty(text: string): string {
  return githubData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
