/** How a piece of text is meant; what it looks like is up to who shows it. */
export type Tone = "plain" | "dim" | "strong" | "good" | "accent" | "warn" | "bad";

export interface Cell {
  readonly text: string;
  readonly tone: Tone;
}

/** A line of text in pieces. Every character is one column wide. */
export type StyledLine = readonly Cell[];

export function cell(text: string, tone: Tone = "plain"): Cell {
  return { text, tone };
}

export function widthOf(line: StyledLine): number {
  return line.reduce((sum, { text }) => sum + text.length, 0);
}

/** The line in at most `columns` columns; one that is longer ends with `…`. */
export function clipped(line: StyledLine, columns: number): StyledLine {
  if (widthOf(line) <= columns) return line;
  const kept: Cell[] = [];
  let space = columns - 1;
  for (const one of line) {
    if (space <= 0) break;
    kept.push({ ...one, text: one.text.slice(0, space) });
    space -= one.text.length;
  }
  return columns < 1 ? [] : [...kept, cell("…", "dim")];
}

/** The text alone, for plain output and for tests. */
export function plainText(line: StyledLine): string {
  return line.map(({ text }) => text).join("");
}
