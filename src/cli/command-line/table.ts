import { between, type Instant } from "../../core/time/time.ts";

/** Columns as kubectl prints them: upper-case headings, three spaces between, left-aligned. */
export function formatTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [heads, ...rows];
  const widths = heads.map((_, column) =>
    Math.max(...all.map((row) => widthOf(row[column] ?? ""))),
  );
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - widthOf(cell)))
        .join("   ")
        .trimEnd(),
    )
    .join("\n")
    .concat("\n");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with ESC.
const escapes = /\u001b\[[0-9;]*m/g;

function widthOf(cell: string): number {
  return cell.replaceAll(escapes, "").length;
}

/** Folds a text into lines of at most `width`. Words are kept whole, however long. */
export function folded(text: string, width: number): readonly string[] {
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

/** An instant relative to another: `in 3h12m`, `now`, `5m ago`. */
export function relativeTime(at: Instant, from: Instant): string {
  const spanMs = between(from, at);
  if (Math.abs(spanMs) < 1000) return "now";
  return spanMs < 0 ? `${spanText(-spanMs)} ago` : `in ${spanText(spanMs)}`;
}

/** At most two units: `45s`, `12m`, `3h04m`, `6d2h`. */
export function spanText(spanMs: number): string {
  const wholeSeconds = Math.floor(spanMs / 1000);
  if (wholeSeconds < 60) return `${wholeSeconds}s`;
  const wholeMinutes = Math.floor(wholeSeconds / 60);
  if (wholeMinutes < 60) return `${wholeMinutes}m`;
  const wholeHours = Math.floor(wholeMinutes / 60);
  if (wholeHours < 48) return `${wholeHours}h${String(wholeMinutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(wholeHours / 24)}d${wholeHours % 24}h`;
}
