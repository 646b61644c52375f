import type { StyledLine, Tone } from "./styled-line.ts";

const esc = "\u001b[";

/** The colours of the sixteen that every terminal has, so that the reader's own theme is kept. */
const codes: Readonly<Record<Tone, string>> = {
  plain: "",
  dim: "2",
  strong: "1",
  good: "32",
  accent: "36;1",
  warn: "33",
  bad: "31;1",
};

/**
 * One frame for a terminal: each line written over the one before and cleared to its end, the rest
 * of the screen cleared last, so that nothing is blank in between. Terminals that know how
 * (DEC mode 2026) show it all at once.
 */
export function ansiFrame(
  lines: readonly StyledLine[],
  look: { readonly colour: boolean },
): string {
  const text = lines.map((line) => `${ansiLine(line, look)}${esc}K`).join("\r\n");
  return `${esc}?2026h${esc}H${text}${esc}J${esc}?2026l`;
}

function ansiLine(line: StyledLine, { colour }: { readonly colour: boolean }): string {
  return line
    .map(({ text, tone }) =>
      colour && codes[tone] !== "" ? `${esc}${codes[tone]}m${text}${esc}0m` : text,
    )
    .join("");
}
