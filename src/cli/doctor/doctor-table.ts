import type { CheckStatus } from "../../doctor/check.ts";
import type { DoctorReport, ReportedCheck } from "../../doctor/report.ts";
import type { CommandIo } from "../command-line/command-io.ts";

const colours: Readonly<Record<CheckStatus, number>> = { Pass: 32, Warn: 33, Fail: 31, Skip: 90 };
const leastWidth = 30;

/**
 * The report for people: a line a check, folded where the terminal ends, and a line that sums up.
 */
export function doctorTable(
  { checks, summary }: DoctorReport,
  { colour, columns }: Pick<CommandIo, "colour" | "columns">,
): string {
  const idWidth = Math.max(...checks.map(({ id }) => id.length));
  const indent = " ".repeat("PASS  ".length + idWidth + 2);
  const width = Math.max(leastWidth, columns - indent.length);
  const line = (check: ReportedCheck) => {
    const word = check.status.toUpperCase();
    const shown = colour ? `\u001b[${colours[check.status]}m${word}\u001b[0m` : word;
    const texts = [
      ...folded(check.message, width),
      ...(check.fix === null ? [] : folded(`fix: ${check.fix}`, width)),
    ];
    return `${shown}  ${check.id.padEnd(idWidth)}  ${texts.join(`\n${indent}`)}\n`;
  };
  const { Pass: passed, Warn: warned, Fail: failed, Skip: skipped } = summary;
  const sum = `${passed} passed, ${warned} warned, ${failed} failed, ${skipped} skipped`;
  return `${checks.map(line).join("")}\n${sum}\n`;
}

/** Words are kept whole, however long. */
function folded(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
