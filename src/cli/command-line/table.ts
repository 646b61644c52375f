/** Columns as kubectl prints them: upper-case heads, three spaces between, left-aligned. */
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

/** A text in lines of at most `width`; words are kept whole, however long. */
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
