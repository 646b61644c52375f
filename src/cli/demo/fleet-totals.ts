import type { BoardNode, DemoPicture } from "../../board/demo-picture.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { Instant } from "../../core/time/time.ts";
import { type Cell, cell, type StyledLine } from "../command-line/terminal.ts";

/** The age by which the cloud takes a preemptible machine. */
export const machineLifeMs = 24 * 3_600_000;

interface Figure {
  /** Losses are highlighted as bad if there are any; the cost of avoiding them is not. */
  readonly isLoss: boolean;
  readonly head: string;
  /** For a narrow terminal. */
  readonly short: string;
  readonly of: (counts: FleetFigures) => number;
}

/**
 * One figure for each promise: none taken at 24 h, not all at once, no pod killed; and the cost in
 * machines. With the marks of 18 nodes they fit into 80 columns.
 */
const figures: readonly Figure[] = [
  { isLoss: true, head: "AT 24 H", short: "24 H", of: (counts) => counts.lostAtLimit },
  { isLoss: true, head: "AT ONCE", short: "AT ONCE", of: (counts) => counts.lostAtOnce },
  { isLoss: true, head: "PODS KILLED", short: "KILLED", of: (counts) => counts.podsKilled },
  { isLoss: false, head: "REPLACED", short: "REPLACED", of: (counts) => counts.replacements },
];

/** What the figures mean. */
export const figureHelp: StyledLine = [
  cell(" Nodes lost at 24 h; most within 1 h, early or at 24 h; pods that were killed.", "dim"),
];

const legend = "▁new █old ×lost ↓leaving";
const gap = "  ";
/** Their width with full headings. */
const columnsForHeads = 56;

/** Both fleets, with one mark per node if that fits, and their outcomes so far. */
export function totalLines(
  state: Pick<DemoPicture, "nodes" | "now" | "without" | "withLastcall">,
  { columns }: { readonly columns: number },
): readonly StyledLine[] {
  const { nodes, now } = state;
  const isNarrow = columns < columnsForHeads;
  const nameWidth = isNarrow ? 8 : 14;
  const headOf = ({ head, short }: Figure): string => (isNarrow ? short : head);
  const heads = figures.map(headOf).join(gap);
  const marks = Math.max(legend.length, nodes.length);
  const hasMarks = nodes.length > 0 && 1 + nameWidth + marks + gap.length + heads.length <= columns;
  const strip = (cells: readonly Cell[]): readonly Cell[] =>
    hasMarks ? [...cells, cell(" ".repeat(marks - cells.length) + gap)] : [];
  const line = (name: string, cells: readonly Cell[], counts: FleetFigures): StyledLine => [
    cell(` ${name.padEnd(nameWidth)}`, "strong"),
    ...strip(cells),
    ...figures.map((figure, place) => {
      const count = figure.of(counts);
      const text = String(count).padStart(headOf(figure).length);
      return cell(`${place === 0 ? "" : gap}${text}`, figure.isLoss && count > 0 ? "bad" : "plain");
    }),
  ];
  const headText = hasMarks ? `${legend.padEnd(marks)}${gap}` : "";
  return [
    [cell(` ${" ".repeat(nameWidth)}${headText}${heads}`, "dim")],
    line(
      isNarrow ? "without" : "without it",
      nodes.map(({ twin }) => (twin === undefined ? cell(" ") : markOf(twin, now, "Without"))),
      state.without,
    ),
    line(
      isNarrow ? "with" : "with Lastcall",
      nodes.map((node) => markOf(node, now, "With")),
      state.withLastcall,
    ),
  ];
}

const levels = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

type Machine = Pick<BoardNode, "bornAt" | "doing">;

/** Without Lastcall a machine that is off is a loss; with it, its replacement is on its way. */
function markOf({ doing, bornAt }: Machine, now: Instant, side: "With" | "Without"): Cell {
  switch (doing) {
    case "Taken":
      return cell("×", "bad");
    case "Gone":
      return side === "Without" ? cell("×", "bad") : cell("·", "dim");
    case "Leaving":
      return cell("↓", "accent");
    case "Booting":
      return cell("·", "dim");
    case "Working":
      return cell(level(now - bornAt), side === "With" ? "good" : "plain");
  }
}

function level(ageMs: number): string {
  const share = Math.min(1, Math.max(0, ageMs / machineLifeMs));
  return levels[Math.round(share * (levels.length - 1))] ?? "█";
}
