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
