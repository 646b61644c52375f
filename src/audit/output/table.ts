import { isGraceful } from "../../core/drain-plan/grace-budget.ts";
import { formatDuration, seconds } from "../../core/time/time.ts";
import { nameOfObject } from "../objects/manifest.ts";
import {
  type AuditReport,
  type Finding,
  type ReportedWorkload,
  type Severity,
  severities,
} from "../report.ts";

export interface TableOptions {
  readonly colour: "On" | "Off";
  /** The most workloads and findings to show; absent: all. The counts always include all. */
  readonly rows?: number | undefined;
}

type Paint = (tone: TextTone, text: string) => string;
type TextTone = "bad" | "warn" | "good" | "dim" | "strong";

const codes: Readonly<Record<TextTone, string>> = {
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
    options.colour === "On" ? `\u001b[${codes[tone]}m${text}\u001b[0m` : text;
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
    ? `${table}\n${paint("dim", `… and ${more} more workloads (-o json has all)`)}`
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
  const never = workload.spot === "Never";
  const grants = platforms.map((name): TextCell => {
    const grantedSeconds = workload.granted[name];
    if (grantedSeconds === undefined) return { text: "-", tone: "dim" };
    if (workload.cut[name] !== true)
      return { text: `${grantedSeconds}s`, tone: never ? "dim" : "good" };
    return { text: `${grantedSeconds}s cut`, tone: never ? "dim" : isSet ? "bad" : "warn" };
  });
  const note = never ? [{ text: "not on Spot", tone: "dim" as const }] : [];
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

/** One block per rule and platform: what it is, where it is, and what to do. */
function findingLines(report: AuditReport, { paint, rows }: Style): readonly string[] {
  const blocks = Map.groupBy(
    report.findings,
    (one) => `${one.severity} ${one.rule} ${one.platform}`,
  );
  let left = rows;
  return [...blocks.values()].flatMap((findings): readonly string[] => {
    const [first] = findings;
    if (first === undefined || left <= 0) return [];
    const platform = first.platform === null ? "" : ` on ${first.platform}`;
    const title = `\n${paint(severityTone[first.severity], first.severity)} ${paint("strong", first.rule)}${platform} (${findings.length})`;
    const shown = findings.slice(0, Math.min(left, Number.isFinite(rows) ? 3 : left));
    left -= shown.length + 2;
    const more = findings.length - shown.length;
    const rest = more > 0 ? [paint("dim", `  … and ${more} more`)] : [];
    return [title, ...shown.map(findingLine), ...rest, paint("dim", `  fix: ${first.fix}`)];
  });
}

function findingLine(finding: Finding): string {
  const line = finding.line === null ? "" : `:${finding.line}`;
  const place = finding.file === null ? "" : ` (${finding.file}${line})`;
  return `  ${finding.object}${place}: ${finding.message}`;
}

function closing(report: AuditReport, paint: Paint): string {
  const { summary } = report;
  const counts = severities.map((severity) => {
    const count = summary.findings[severity];
    const text = `${count} ${severity}${count === 1 || severity === "info" ? "" : "s"}`;
    return count === 0 ? text : paint(severityTone[severity], text);
  });
  const aside = [
    ...(report.ignored.length > 0 ? [`${report.ignored.length} ignored`] : []),
    ...(report.known.length > 0 ? [`${report.known.length} in the baseline`] : []),
  ];
  const workloads = counted(summary.workloads, "workload");
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

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
