import type { AuditReport } from "../report.ts";
import type { Severity } from "../rule.ts";

const commands: Readonly<Record<Severity, string>> = {
  error: "error",
  warning: "warning",
  info: "notice",
};

/**
 * Findings as GitHub workflow commands, one a line: annotations on the changed files of a pull
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
