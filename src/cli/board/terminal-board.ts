import { cutName } from "../../board/name-parts.ts";
import type { NodeDepartures } from "../../board/node-page.ts";
import { filteredRows } from "../../board/row-filter.ts";
import {
  type BoardPicture,
  type BoardRow,
  isKnown,
  type PastDeparture,
} from "../../board/stream.ts";
import { between, formatInstant, type Instant, instant } from "../../core/time/time.ts";
import {
  cell,
  clipped,
  type StyledLine,
  spanText,
  type Tone,
  widthOf,
  wrapped,
  wrappedTo,
} from "../command-line/terminal.ts";
import { dayAndTime, headlineLines } from "./terminal-headline.ts";
import type { TerminalPlace } from "./terminal-keys.ts";
import { nodeLines } from "./terminal-node.ts";
import { inOrder, nameWidth, nodeTable } from "./terminal-table.ts";

/** A key, or several of a kind, and what it does. */
export type KeyHelp = readonly [key: string, does: string];

/** What is shown above the board, as the demo's two fleets are. */
export interface TerminalBand {
  /** In place of the board's own first line. */
  readonly title: StyledLine;
  /** Between the first line and the headline, above the list of nodes. */
  readonly lines: readonly StyledLine[];
  /** More of it, about what happens now, in at most that many lines. */
  readonly happening: (rows: number) => readonly StyledLine[];
  readonly keys: readonly KeyHelp[];
}

export interface TerminalLook {
  readonly sort: TerminalPlace["sort"];
  readonly scroll: number;
  readonly mode?: TerminalPlace["mode"] | undefined;
  readonly filter?: string | undefined;
  /** Without it, no row is selected. */
  readonly cursor?: number | undefined;
  readonly selected?: string | null | undefined;
  readonly nodeScroll?: number | undefined;
  readonly page?: number | undefined;
  readonly columns: number;
  readonly rows: number;
  /** The departures of a node with their steps. */
  readonly departuresOf?: ((node: string) => NodeDepartures | undefined) | undefined;
  readonly band?: TerminalBand | undefined;
}

export interface TerminalBoard {
  readonly lines: readonly StyledLine[];
  /** `List` if the node that was described is gone. */
  readonly mode: TerminalPlace["mode"];
  /** The scroll position in the list of nodes, and how many are shown at once. */
  readonly scroll: number;
  readonly page: number;
  /**
   * The selected row: its place in the list, and its id; none if nothing is listed, and for the
   * first row unless a person has selected or found it.
   */
  readonly cursor: number;
  readonly selected: string | null;
  readonly nodeScroll: number;
}

/** How many problems and past departures are listed; the rest are counted. */
const [mostMissing, mostPast] = [3, 6];
/** Nodes have at least this many lines before past departures get any. */
const fewestNodes = 5;

/**
 * What is left for the list while something happens: a headline of two lines, an empty line, the
 * heads, a node, and how many more there are.
 */
const rowsForList = 6;
/** With fewer rows below the band, the nodes matter more than the keys. */
const rowsForKeys = 8;

/** The board of a live cluster, in at most as many lines and columns as fit. */
export function terminalBoard(
  picture: BoardPicture,
  now: Instant,
  look: TerminalLook,
): TerminalBoard {
  const { columns, rows, sort, filter = "", band } = look;
  const listed = isKnown(picture) ? inOrder(filteredRows(picture.rows, filter), sort) : [];
  const cursor = look.cursor === undefined ? undefined : cursorIn(listed, look);
  const described = look.mode === "Node" ? describedRow(picture, listed[cursor ?? -1], look) : null;
  const mode = look.mode === "Node" && described === null ? "List" : (look.mode ?? "List");
  const isKeyed = rows - (mode === "Node" ? 0 : (band?.lines.length ?? 0)) >= rowsForKeys;
  const foot = isKeyed ? keyLines({ ...look, mode }) : [];
  const space = rows - foot.length;
  const body =
    described === null
      ? listOf(picture, { listed, now, look: { ...look, cursor }, space })
      : describedNode(picture, { row: described, now, look, space });
  const air = Array.from({ length: Math.max(0, space - body.lines.length) }, () => []);
  const lines = [...body.lines, ...air, ...foot];
  const isFirst = look.selected == null && cursor === 0 && filter === "";
  const selected = described ?? (isFirst ? undefined : listed[cursor ?? -1]);
  return {
    ...{ scroll: look.scroll, page: look.page ?? 1, nodeScroll: 0 },
    ...body,
    ...{ mode, cursor: cursor ?? 0, selected: selected?.id ?? null },
    lines: lines.slice(0, rows).map((line) => clipped(line, columns)),
  };
}

/** The node that was selected, also if the filter no longer shows it, but never another one. */
function describedRow(
  picture: BoardPicture,
  atCursor: BoardRow | undefined,
  { selected }: Pick<TerminalLook, "selected">,
): BoardRow | null {
  if (selected == null) return atCursor ?? null;
  return (isKnown(picture) && picture.rows.find(({ id }) => id === selected)) || null;
}

/** The place of the selected row, wherever it is by now. */
function cursorIn(
  listed: readonly BoardRow[],
  { cursor = 0, selected }: Pick<TerminalLook, "cursor" | "selected">,
): number {
  const found = selected == null ? -1 : listed.findIndex(({ id }) => id === selected);
  return found >= 0 ? found : Math.max(0, Math.min(cursor, listed.length - 1));
}

interface ListInput {
  readonly listed: readonly BoardRow[];
  readonly now: Instant;
  readonly look: TerminalLook;
  /** In lines. */
  readonly space: number;
}

function listOf(picture: BoardPicture, { listed, now, look, space }: ListInput) {
  const { columns, rows, filter = "", band } = look;
  const isShown = isKnown(picture);
  const top = [...headLines(picture, now, band), ...(band?.lines ?? [])];
  const spare = space - top.length - rowsForList;
  const happening = band?.happening(spare) ?? [];
  const gap = happening.length > 0 && happening.length + 1 < spare ? [[]] : [];
  const above = [...top, ...happening, ...gap];
  const beside = rows - (band === undefined ? 0 : above.length);
  const head = [
    ...above,
    ...troubleLines(picture, { now, columns }),
    ...(isShown ? headlineLines(picture, { now, columns, rows: beside }) : []),
    ...(filter === "" || !isShown
      ? [[]]
      : [filterLine(listed.length, picture.rows.length, filter)]),
  ];
  const room = Math.max(2, space - head.length);
  const past = pastLines(picture.past, {
    ...{ columns, space: Math.min(mostPast, room - fewestNodes - 4) },
  });
  const table = nodeTable(listed, { ...look, picture, now, rows: room - past.length });
  return { ...table, lines: [...head, ...table.lines, ...past] };
}

function filterLine(found: number, all: number, filter: string): StyledLine {
  const text = ` ${found} of ${all} match `;
  return [cell(text, found === 0 ? "warn" : "dim"), cell(filter, "strong")];
}

interface NodeInput extends Omit<ListInput, "listed"> {
  readonly row: BoardRow;
}

function describedNode(picture: BoardPicture, { row, now, look, space }: NodeInput) {
  const { columns, departuresOf, nodeScroll: wanted = 0, band } = look;
  const head = [...headLines(picture, now, band), ...troubleLines(picture, { now, columns }), []];
  const of = departuresOf?.(row.node);
  const lines = nodeLines(row, picture, { now, columns, of });
  const room = Math.max(1, space - head.length);
  const nodeScroll = Math.max(0, Math.min(wanted, lines.length - room));
  return { lines: [...head, ...lines.slice(nodeScroll, nodeScroll + room)], nodeScroll };
}

/** The number of nodes is not shown before it is known. */
function headLines(
  picture: BoardPicture,
  now: Instant,
  band: TerminalBand | undefined,
): readonly StyledLine[] {
  if (band !== undefined) return [band.title];
  const { fleet, rows } = picture;
  const count = rows.length === 1 ? "1 node of " : `${rows.length} nodes of `;
  const nodes = isKnown(picture) ? count : "";
  const time = formatInstant(now).slice(0, 19).replace("T", " ");
  return [[cell(" Lastcall", "strong"), cell(`   ${time} UTC   ${nodes}`), cell(fleet.cluster)]];
}

/** Why the board does not show the present state, or not all of it. */
function troubleLines(
  { fleet: { connection, missing } }: BoardPicture,
  { now, columns }: { readonly now: Instant; readonly columns: number },
): readonly StyledLine[] {
  const said: (readonly [string, Tone])[] = [];
  if (connection.kind === "Connecting") said.push(["Connecting to the cluster", "warn"]);
  if (connection.kind === "Away") {
    const since = spanText(Math.max(0, between(connection.sinceAt, now)));
    said.push([
      `The cluster has not responded for ${since}, showing its last known state: ${connection.problem}`,
      "bad",
    ]);
  }
  for (const one of missing.slice(0, mostMissing)) said.push([one, "warn"]);
  if (missing.length > mostMissing)
    said.push([`and ${missing.length - mostMissing} more are missing`, "warn"]);
  return said.flatMap(([text, tone]) =>
    wrappedTo(text, { columns: columns - 2, lines: 2 }).map((line) => [cell(` ${line}`, tone)]),
  );
}

function pastLines(
  past: readonly PastDeparture[],
  { columns, space }: { readonly columns: number; readonly space: number },
): readonly StyledLine[] {
  const shown = past.slice(0, Math.max(0, space));
  if (shown.length === 0) return [];
  return [
    [],
    ...shown.map(({ endedAt, outcome, explain, node }) => {
      const heads = [
        cell(` ${dayAndTime(instant(endedAt))}  `, "dim"),
        cell(`${outcome.padEnd(10)}  `, outcome === "Planned" ? "good" : "warn"),
        cell(cutName(node, nameWidth(columns))),
      ];
      const text = explain.startsWith(`${node} `) ? explain.slice(node.length) : `: ${explain}`;
      return [...heads, cell(inWords(text, columns - widthOf(heads)))];
    }),
  ];
}

/** As many whole words as fit: a truncated number would be a different number. */
function inWords(text: string, columns: number): string {
  const [first = "", ...more] = wrapped(text, columns);
  if (more.length === 0) return first;
  return `${wrapped(text, columns - 2)[0] ?? ""} …`;
}

const keyHelp: Readonly<Record<TerminalPlace["mode"], readonly KeyHelp[]>> = {
  List: [
    ["↑ ↓ PgUp PgDn", "move"],
    ["Enter", "describe"],
    ["/", "filter"],
    ["s", "sort"],
    ["q", "quit"],
  ],
  Filter: [
    ["Enter", "keep"],
    ["Esc", "clear"],
  ],
  Node: [
    ["↑ ↓ PgUp PgDn", "scroll"],
    ["Esc", "back"],
    ["q", "quit"],
  ],
};

/** The keys that have a meaning now, those of the band first, on as many lines as they take. */
function keyLines({ mode = "List", filter = "", band, columns }: TerminalLook) {
  const typing: StyledLine = mode === "Filter" ? [cell(` /${filter}_`, "strong")] : [];
  const isFiltered = mode === "List" && filter !== "";
  const keys: readonly KeyHelp[] = [
    ...(mode === "Filter" ? [] : (band?.keys ?? [])),
    ...(isFiltered ? [["Esc", "show all"] as const] : []),
    ...keyHelp[mode],
  ];
  const lines: StyledLine[] = [typing];
  for (const [key, does] of keys) {
    const last = lines.at(-1) ?? [];
    const cells = [cell(` ${key}`, "strong"), cell(` ${does}`, "dim")];
    const longer = last.length === 0 ? cells : [...last, cell(" "), ...cells];
    if (last.length > 0 && widthOf(longer) > columns) lines.push(cells);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
