import type { BoardNode, BoardTwin, DemoPicture, NodeActivity } from "../../board/demo-picture.ts";
import { reasonWords } from "../../board/reason-words.ts";
import type { FleetFigures } from "../../board/stream.ts";
import { compareNames } from "../../core/cluster/name-order.ts";
import { counted } from "../../core/reason/counted.ts";
import { between, type Instant } from "../../core/time/time.ts";
import {
  type Cell,
  cell,
  type StyledLine,
  shareBar,
  spanText,
  type Tone,
} from "../command-line/terminal.ts";

/** The age by which the cloud takes a preemptible machine. */
export const machineLifeMs = 24 * 3_600_000;

export interface RowWidths {
  readonly name: number;
  /** Width of an age; 0 if ages do not fit. */
  readonly bar: number;
  /** Width of the last column. */
  readonly what: number;
}

const [ageWidth, leavesWidth] = [7, 11];
/** Width of the reason; with at least this many columns it also says how early the node leaves. */
const [reasonWidth, columnsForEarly, earlyWidth] = [27, 100, 13];
/** With fewer columns there is only space for when a node leaves and why. */
const columnsForAges = 60;
/** Space around the names, between the fleets and before the last columns. */
const gaps = 7;

/** The widths of the columns: as wide as their contents, with the bars taking the rest. */
export function rowWidths(nodes: readonly BoardNode[], columns: number): RowWidths {
  const name = Math.max(4, ...nodes.map((node) => node.name.length));
  if (columns < columnsForAges) return { name, bar: 0, what: columns - name - leavesWidth - 2 };
  const space = columns - name - 2 * ageWidth - leavesWidth - gaps;
  const fewest = reasonWidth + (columns < columnsForEarly ? 0 : earlyWidth);
  const bar = Math.max(5, Math.min(20, Math.floor((space - fewest) / 2)));
  return { name, bar, what: space - 2 * bar };
}

/** The headings for the columns of `nodeRow`. */
export function rowHeads({ name, bar }: Pick<RowWidths, "name" | "bar">): StyledLine {
  const age = bar + ageWidth;
  if (bar === 0)
    return [cell(` ${"NODE".padEnd(name)} ${"LEAVES".padEnd(leavesWidth)}REASON`, "dim")];
  const heads = [
    ` ${"NODE".padEnd(name)} `,
    `${"WITHOUT: AGE".padEnd(age)} │ `,
    `${"WITH: AGE".padEnd(age)}  `,
    "LEAVES".padEnd(leavesWidth),
    "REASON",
  ];
  return [cell(heads.join(""), "dim")];
}

/** Departures under way first, then the next to leave; or by name. */
export function inOrder(
  nodes: readonly BoardNode[],
  sort: "Leaving" | "Name",
): readonly BoardNode[] {
  const byName = nodes.toSorted((a, b) => compareNames(a.name, b.name));
  return sort === "Name" ? byName : byName.toSorted((a, b) => leavingRank(a) - leavingRank(b));
}

function leavingRank({ doing }: BoardNode): number {
  switch (doing.kind) {
    case "Taken":
      return -2;
    case "Draining":
    case "Releasing":
    case "RollingBack":
    case "Held":
      return -1;
    case "Scheduled":
      return doing.departAt;
    case "Working":
    case "Gone":
    case "Booting":
      return Number.MAX_SAFE_INTEGER;
  }
}

/** The same node in both fleets: its machines' ages, when Lastcall's leaves, and why. */
export function nodeRow(
  node: BoardNode,
  at: { readonly now: Instant; readonly widths: RowWidths },
): StyledLine {
  const { now, widths } = at;
  const { leaves, what } = saying(node.doing, { now, space: widths.what });
  const tone = toneOf(node.doing);
  const isQuiet = tone === "plain" || tone === "dim";
  const isThere = node.doing.kind !== "Gone" && node.doing.kind !== "Booting";
  const ageMs = isThere ? Math.max(0, between(node.bornAt, now)) : undefined;
  const ages = [
    ...twinCells(node.twin, at),
    cell(" │ ", "dim"),
    ...ageCells(ageMs, { width: widths.bar, tone: isQuiet ? "good" : tone }),
    cell("  "),
  ];
  return [
    cell(` ${node.name.padEnd(widths.name)} `, isQuiet ? "plain" : tone),
    ...(widths.bar === 0 ? [] : ages),
    cell(leaves.padEnd(leavesWidth), tone),
    cell(what, tone),
  ];
}

function twinCells(
  twin: BoardTwin | undefined,
  { now, widths }: { readonly now: Instant; readonly widths: RowWidths },
): readonly Cell[] {
  const width = widths.bar + ageWidth;
  if (twin?.doing === "Taken") return [cell("NOTICE".padEnd(width), "bad")];
  if (twin?.doing === "Gone") return [cell("lost".padEnd(width), "bad")];
  if (twin?.doing === "Booting")
    return [cell("new one booting".slice(0, width).padEnd(width), "dim")];
  const ageMs = twin === undefined ? undefined : Math.max(0, between(twin.bornAt, now));
  return ageCells(ageMs, { width: widths.bar, tone: "plain" });
}

/** A bar with the age beside it; empty if there is no machine. */
function ageCells(
  ageMs: number | undefined,
  look: { readonly width: number; readonly tone: Tone },
): readonly Cell[] {
  const text = ageMs === undefined ? "" : spanText(ageMs);
  const bar = shareBar((ageMs ?? 0) / machineLifeMs, look);
  return [...bar, cell(text.padStart(ageWidth), look.tone === "good" ? "plain" : look.tone)];
}

function saying(
  doing: NodeActivity,
  { now, space }: { readonly now: Instant; readonly space: number },
): { readonly leaves: string; readonly what: string } {
  switch (doing.kind) {
    case "Working":
      return { leaves: "", what: "not planned yet" };
    case "Scheduled":
      return { leaves: untilText(between(now, doing.departAt)), what: whyText(doing, space) };
    case "Held":
      return { leaves: "held", what: doing.why === undefined ? "" : reasonWords[doing.why].en };
    case "Draining":
      return { leaves: "now", what: drainText(doing) };
    case "Releasing":
      return { leaves: "now", what: "drained, releasing" };
    case "RollingBack":
      return { leaves: "stays", what: "uncordoned" };
    case "Taken":
      return { leaves: "NOTICE", what: takenText(doing, now) };
    case "Gone":
      return { leaves: "gone", what: "being replaced" };
    case "Booting":
      return { leaves: "", what: "new machine booting" };
  }
}

/** With how long before its deadline, if that fits. */
function whyText(
  { why, departAt, deadlineAt }: Extract<NodeActivity, { kind: "Scheduled" }>,
  space: number,
): string {
  const words = reasonWords[why].en;
  if (deadlineAt === undefined) return words;
  const earlyMs = between(departAt, deadlineAt);
  const early = earlyMs < 60_000 ? "at deadline" : `${spanText(earlyMs)} early`;
  const whole = `${words}, ${early}`;
  return whole.length <= space ? whole : words;
}

function drainText(doing: Extract<NodeActivity, { kind: "Draining" }>): string {
  const { podsLeft, podsTotal, blocked } = doing;
  const held = blocked === 0 ? "" : `, ${blocked} blocked by a budget`;
  return `${podsLeft} of ${counted(podsTotal, "pod")} still there${held}`;
}

function takenText(doing: Extract<NodeActivity, { kind: "Taken" }>, now: Instant): string {
  const { deadlineAt, podsLeft } = doing;
  const leftMs = between(now, deadlineAt);
  const pods = podsLeft === undefined ? "" : `, ${podsText(podsLeft)}`;
  return leftMs <= 0 ? `shut down${pods}` : `in ${Math.ceil(leftMs / 1000)} s${pods}`;
}

function podsText(left: number): string {
  if (left === 0) return "drained";
  return `${counted(left, "pod")} still there`;
}

function toneOf(doing: NodeActivity): Tone {
  switch (doing.kind) {
    case "Draining":
    case "Releasing":
      return "accent";
    case "Held":
    case "RollingBack":
      return "warn";
    case "Taken":
      return "bad";
    case "Gone":
    case "Booting":
      return "dim";
    case "Working":
    case "Scheduled":
      return "plain";
  }
}

function untilText(spanMs: number): string {
  return spanMs <= 0 ? "due" : `in ${spanText(spanMs)}`;
}

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
  const byName = nodes.toSorted((a, b) => compareNames(a.name, b.name));
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
