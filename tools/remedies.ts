/**
 * Checks a page's tables for the members of a closed list: each needs a row whose first cell is its
 * name and whose other cells, the cause and the remedy, are not empty.
 */
export function missingRemedies(page: {
  readonly path: string;
  readonly text: string;
  readonly words: readonly string[];
}): readonly string[] {
  const rows = new Map<string, readonly string[]>();
  for (const line of page.text.split("\n")) {
    const [, word, ...cells] = line.startsWith("| `") ? line.split(/(?<!\\)\|/) : [];
    const name = /^ `(\w+)` $/.exec(word ?? "")?.[1];
    if (name !== undefined) rows.set(name, cells.slice(0, -1));
  }
  return page.words.flatMap((word) => {
    const cells = rows.get(word);
    if (cells === undefined) return [`${page.path}: ${word} is not explained`];
    const full = cells.length >= 2 && cells.every((cell) => cell.trim() !== "");
    return full ? [] : [`${page.path}: ${word} has no cause, or nothing to do`];
  });
}
