import type { BoardNode, BoardTwin, DemoPicture } from "../../board/demo-picture.ts";
import type { FleetFigures } from "../../board/stream.ts";
import { type Cell, cell, type StyledLine } from "../terminal/styled-line.ts";
import { machineLifeMs } from "./board-row.ts";

interface Figure {
  /** Losses are shown as bad where there are any; what avoiding them costs is not. */
  readonly isLoss: boolean;
  readonly head: string;
  /** On a narrow terminal. */
  readonly short: string;
  readonly of: (counts: FleetFigures) => number;
}

/**
 * One for each promise: none at 24 h, not all at once, no pod killed; and what that costs in
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
/** With the whole heads they take so much. */
const columnsForHeads = 56;

/** Both fleets, a mark a node where there is room, and what became of them so far. */
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
  const byName = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
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
      byName.map(({ twin }) => twinMark(twin, now)),
      state.without,
    ),
    line(
      isNarrow ? "with" : "with Lastcall",
      byName.map((node) => nodeMark(node, now)),
      state.withLastcall,
    ),
  ];
}

const levels = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

function twinMark(twin: BoardTwin | undefined, now: number): Cell {
  if (twin === undefined) return cell(" ");
  if (twin.doing === "Taken" || twin.doing === "Gone") return cell("×", "bad");
  return twin.doing === "Booting" ? cell("·", "dim") : cell(level(now - twin.bornAt), "plain");
}

function nodeMark({ doing, bornAt }: BoardNode, now: number): Cell {
  switch (doing.kind) {
    case "Taken":
      return cell("×", "bad");
    case "Draining":
    case "Releasing":
      return cell("↓", "accent");
    case "Gone":
    case "Booting":
      return cell("·", "dim");
    case "Working":
    case "Scheduled":
    case "Held":
    case "RollingBack":
      return cell(level(now - bornAt), "good");
  }
}

function level(ageMs: number): string {
  const share = Math.min(1, Math.max(0, ageMs / machineLifeMs));
  return levels[Math.round(share * (levels.length - 1))] ?? "█";
}
