import type { Cell, StyledLine, Tone } from "../src/cli/command-line/terminal.ts";

const columnPx = 8;
const rowPx = 17;
const marginPx = 14;

/** On a dark background, readable on light and dark pages. */
const colours: Readonly<Record<Tone, string>> = {
  plain: "#c9d1d9",
  dim: "#7d8590",
  strong: "#ffffff",
  good: "#3fb950",
  accent: "#58c7e8",
  warn: "#d29922",
  bad: "#f85149",
};

/** The eighths of a column in which a bar may end. */
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/**
 * Draws lines of text as an SVG picture, cell by cell. Text is fixed to its columns, and bars are
 * drawn as rectangles, so that it looks the same in every font.
 */
export function svgFrame(
  lines: readonly StyledLine[],
  picture: { readonly columns: number; readonly title: string },
): string {
  const width = picture.columns * columnPx + 2 * marginPx;
  const height = lines.length * rowPx + 2 * marginPx;
  const rows = lines.flatMap((line, row) => drawLine(line, row));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(picture.title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">`,
    ...rows,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

function drawLine(line: StyledLine, row: number): readonly string[] {
  const drawn: string[] = [];
  let column = 0;
  for (const one of line) {
    drawn.push(...drawBars(one, { row, column }));
    drawn.push(...drawText(one, { row, column }));
    column += one.text.length;
  }
  return drawn;
}

interface Place {
  readonly row: number;
  readonly column: number;
}

/** The words of a cell, each at its column; spaces are not drawn. */
function drawText({ text, tone }: Cell, { row, column }: Place): readonly string[] {
  const baseline = marginPx + row * rowPx + 13;
  const weight = tone === "strong" ? ' font-weight="bold"' : "";
  return [...text.matchAll(/[^ █▏▎▍▌▋▊▉]+(?: [^ █▏▎▍▌▋▊▉]+)*/g)].map((match) => {
    const x = marginPx + (column + match.index) * columnPx;
    const length = match[0].length * columnPx;
    return `<text x="${x}" y="${baseline}" textLength="${length}" fill="${colours[tone]}"${weight}>${escapeXml(match[0])}</text>`;
  });
}

/** The bars of a cell, anywhere between its words. */
function drawBars({ text, tone }: Cell, { row, column }: Place): readonly string[] {
  return [...text.matchAll(/█+[▏▎▍▌▋▊▉]?|[▏▎▍▌▋▊▉]/g)].map(({ 0: bar, index }) => {
    const full = bar.lastIndexOf("█") + 1;
    const rest = Math.max(0, eighths.indexOf(bar.at(full) ?? ""));
    const width = (full + rest / 8) * columnPx;
    const [x, y] = [marginPx + (column + index) * columnPx, marginPx + row * rowPx + 3];
    return `<rect x="${x}" y="${y}" width="${width}" height="${rowPx - 6}" fill="${colours[tone]}"/>`;
  });
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
