/**
 * The rows of a page's tables whose first cell is a word of a closed list. Whoever looks one up is
 * to find why it came and what to do: a word without a row, and a row with an empty cell, is named.
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
