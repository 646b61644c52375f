import type { AuditReport, Finding, Rule, Severity } from "../report.ts";
import { rankOf, ruleList } from "../rule-list.ts";

const levels: Readonly<Record<Severity, string>> = {
  error: "error",
  warning: "warning",
  info: "note",
};

/**
 * The report as a SARIF 2.1.0 log with one run. A finding that an annotation ignores is a result
 * suppressed in the source, one of the baseline a result suppressed externally. Source: OASIS SARIF
 * 2.1.0; GitHub's notes on what code scanning reads of it.
 */
export function sarifLog(report: AuditReport, toolVersion: string): unknown {
  const open = report.findings.map((finding) => resultOf(finding));
  const ignored = report.ignored.map(({ reason, ...finding }) => ({
    ...resultOf(finding),
    suppressions: [{ kind: "inSource", justification: reason }],
  }));
  const known = report.known.map((finding) => ({
    ...resultOf(finding),
    suppressions: [{ kind: "external", justification: "Accepted in the baseline" }],
  }));
  const driver = { name: "lastcall", version: toolVersion, rules: ruleList.map(descriptorOf) };
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      { tool: { driver }, columnKind: "utf16CodeUnits", results: [...open, ...ignored, ...known] },
    ],
  };
}

function descriptorOf(rule: Rule): unknown {
  const help = `${rule.why}\n\nFix: ${rule.fix}\n\nWhen not to use it: ${rule.whenNotToUse}`;
  return {
    id: rule.id,
    shortDescription: { text: `${rule.title.charAt(0).toUpperCase()}${rule.title.slice(1)}` },
    fullDescription: { text: rule.why },
    help: { text: help, markdown: help },
    defaultConfiguration: { level: levels[rule.severity] },
    properties: { tags: ["kubernetes", "spot"] },
  };
}

function resultOf(finding: Finding): Readonly<Record<string, unknown>> {
  const platform = finding.platform === null ? "" : ` [${finding.platform}]`;
  return {
    ruleId: finding.rule,
    ruleIndex: rankOf(finding.rule),
    level: levels[finding.severity],
    message: { text: `${finding.object}${platform}: ${finding.message}. ${finding.fix}.` },
    locations: locationsOf(finding),
    partialFingerprints: {
      "lastcallFinding/v1": `${finding.rule}|${finding.platform ?? ""}|${finding.object}`,
    },
  };
}

/**
 * The file name for standard input: GitHub accepts no log with a result without a file. Its code
 * scanning shows no code beside such a result, as for any file outside of the repository.
 */
const standardInputUri = "stdin";

/** A live cluster has no file to point at, so the object is named. */
function locationsOf(finding: Finding): readonly unknown[] {
  const logicalLocations = [{ fullyQualifiedName: finding.object, kind: "resource" }];
  if (finding.file === null) return [{ logicalLocations }];
  const artifactLocation = { uri: uriOf(finding.file) };
  const region = { startLine: finding.line ?? 1 };
  return [{ physicalLocation: { artifactLocation, region }, logicalLocations }];
}

function uriOf(file: string): string {
  if (file === "-") return standardInputUri;
  const path = file.replaceAll("\\", "/").replace(/^\.\//, "");
  return path.split("/").map(encodeURIComponent).join("/");
}

const commands: Readonly<Record<Severity, string>> = {
  error: "error",
  warning: "warning",
  info: "notice",
};

/**
 * Findings as GitHub workflow commands, one per line: annotations on the changed files of a pull
 * request. Source: GitHub Actions, "Workflow commands", with the escapes of its toolkit.
 */
export function githubAnnotations(report: AuditReport): string {
  const lines = report.findings.map((finding) => {
    const place = [
      ...(finding.file === null || finding.file === "-" ? [] : [`file=${property(finding.file)}`]),
      ...(finding.file === null || finding.line === null ? [] : [`line=${finding.line}`]),
      `title=${property(finding.rule)}`,
    ];
    const text = data(`${finding.object}: ${finding.message}. ${finding.fix}`);
    return `::${commands[finding.severity]} ${place.join(",")}::${text}\n`;
  });
  return lines.join("");
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
