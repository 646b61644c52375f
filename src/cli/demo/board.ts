import { type BoardNews, type DemoPicture, storyText } from "../../board/demo-picture.ts";
import type { WindowState } from "../../core/limits/windows.ts";
import { between, formatInstant, type Instant } from "../../core/time/time.ts";
import { spanText } from "../command-line/relative-time.ts";
import {
  cell,
  clipped,
  type StyledLine,
  type Tone,
  widthOf,
  wrapped,
} from "../terminal/styled-line.ts";
import { noticeLines } from "./board-notice.ts";
import { inOrder, nodeRow, rowHeads, rowWidths } from "./board-row.ts";
import { figureHelp, totalLines } from "./board-totals.ts";
import { keyHelp } from "./controls.ts";
import { momentText } from "./pace.ts";

/** The picture, and how it is looked at in a terminal. */
export interface BoardState extends DemoPicture {
  readonly sort?: "Leaving" | "Name" | undefined;
  /** Whether somebody is there to press keys, so that they are shown. */
  readonly hasKeys?: boolean | undefined;
  /** The path of the file for a second terminal's kubectl. */
  readonly kubeconfig: string;
  /** Of the same board in a browser. */
  readonly address?: string | undefined;
}

export interface BoardSize {
  readonly columns: number;
  readonly rows: number;
}

const [fewestNews, mostNews] = [3, 8];
/** From so many rows on there is room for all parts of the board. */
const wholeRows = 20;
/** And from so many on for all pods of a notice beside them. */
const roomyRows = 30;
/** While a notice runs: the heads, the node that is taken, and how many more there are. */
const fewestNodeLines = 3;

/**
 * The board in at most as many lines as fit. What the fleets are and what became of them is always
 * there; windows, forecast, events and keys from 20 rows on; the rest is the nodes', the next to
 * leave first.
 */
export function board(state: BoardState, size: BoardSize): readonly StyledLine[] {
  const isWhole = size.rows >= wholeRows;
  // Where there is little room the pods of a notice have it.
  const hasRoom = state.notice === undefined || size.rows >= roomyRows;
  const hasHelp = isWhole && hasRoom && widthOf(figureHelp) <= size.columns;
  const head = [
    ...headLines(state, size),
    ...totalLines(state, size),
    ...(hasHelp ? [figureHelp] : []),
    ...(isWhole ? policyLines(state) : []),
  ];
  const foot = isWhole && state.hasKeys === true ? keyLines(size) : [];
  const middle = middleLines(state, {
    columns: size.columns,
    rows: Math.max(0, size.rows - head.length - foot.length),
    isWhole,
  });
  const lines = [...head, ...middle];
  const air = Math.max(0, size.rows - lines.length - foot.length);
  const padding: readonly StyledLine[] =
    foot.length > 0 ? Array.from({ length: air }, () => []) : [];
  return [...lines, ...padding, ...foot]
    .slice(0, size.rows)
    .map((line) => clipped(line, size.columns));
}

function headLines(state: BoardState, { columns }: BoardSize): readonly StyledLine[] {
  const { now, seed, story } = state;
  return [
    [
      cell(" Lastcall demo", "strong"),
      cell(`   ${timeText(now)} UTC   seed ${seed}   `),
      ...speedCells(state),
    ],
    ...wrapped(storyText(story, now, spanText), columns - 2).map((line) => [
      cell(` ${line}`, "strong"),
    ]),
    ...(state.address === undefined
      ? []
      : copiedLines(state.address, { note: "in a browser", columns })),
    ...copiedLines(`KUBECONFIG=${state.kubeconfig}`, { note: "kubectl get dep,nodes", columns }),
  ];
}

/** What people copy is whole, on as many lines as that takes; what it is for only beside it. */
function copiedLines(
  text: string,
  { note, columns }: { readonly note: string; readonly columns: number },
): readonly StyledLine[] {
  if (text.length < columns) return [[cell(` ${text}`, "accent"), cell(` ${note}`, "dim")]];
  const pieces: StyledLine[] = [];
  const most = Math.max(1, columns);
  for (let at = 0; at < text.length; at += most) {
    pieces.push([cell(text.slice(at, at + most), "accent")]);
  }
  return pieces;
}

function speedCells({ speed, moment, paused }: BoardState): StyledLine {
  if (paused) return [cell("PAUSED", "warn")];
  const rounded = speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed);
  const why = momentText(moment);
  const text = why === "" ? `${rounded}x` : `${rounded}x (${why})`;
  return [cell(text, why === "" ? "plain" : "accent")];
}

/** The windows and the forecast of each policy. */
function policyLines({ policies, now }: BoardState): readonly StyledLine[] {
  return policies.flatMap(({ name, windows, forecast }) => [
    [cell(` policy ${name}  `, "strong"), cell(windowText(windows, now), windowTone(windows))],
    [cell(`${indentOf(name)}${forecast}`, "dim")],
  ]);
}

/** As far as what stands beside the name of a policy. */
function indentOf(name: string): string {
  return " ".repeat(` policy ${name}  `.length);
}

function windowText({ state, until, window }: WindowState, now: Instant): string {
  const name = window === undefined ? "" : ` (window ${window})`;
  if (until === undefined) {
    return state === "Open" ? "open for departures at any time" : `closed for departures${name}`;
  }
  const clock = `${timeText(until).slice(11, 16)}, in ${spanText(between(now, until))}`;
  return `${state === "Open" ? "open" : "closed"} for departures until ${clock}${name}`;
}

function windowTone({ state }: WindowState): Tone {
  return state === "Open" ? "good" : "warn";
}

interface Middle extends BoardSize {
  readonly isWhole: boolean;
}

/**
 * Audit, notice, nodes and events share what is left of the screen; each is parted by an empty
 * line.
 */
function middleLines(state: BoardState, { columns, rows, isWhole }: Middle): readonly StyledLine[] {
  if (!isWhole) return nodeLines(state, { columns, rows });
  const news = Math.min(state.news.length, state.notice === undefined ? fewestNews : 1);
  const forNotice = rows - fewestNodeLines - news - 3;
  const notice =
    state.notice === undefined || forNotice < 2
      ? []
      : noticeLines(state.notice, { now: state.now, columns, rows: forNotice });
  const fixed = [...auditLines(state, rows - notice.length - news), ...parted(notice)];
  const nodes = nodeLines(state, { columns, rows: rows - fixed.length - news - 2 });
  const used = fixed.length + nodes.length + 2;
  return [...fixed, [], ...nodes, ...parted(newsLines(state.news, { columns, rows: rows - used }))];
}

function parted(lines: readonly StyledLine[]): readonly StyledLine[] {
  return lines.length === 0 ? [] : [[], ...lines];
}

/** What the audit says of each policy's workloads, where it costs no node its line. */
function auditLines({ policies, nodes }: BoardState, rows: number): readonly StyledLine[] {
  const lines = policies.flatMap(({ name, audit }) =>
    audit === undefined ? [] : [[cell(`${indentOf(name)}${audit}`, "dim")]],
  );
  return rows >= nodes.length + lines.length + 4 ? lines : [];
}

function nodeLines(state: BoardState, size: BoardSize): readonly StyledLine[] {
  const { now, nodes } = state;
  const widths = rowWidths(nodes, size.columns);
  const space = Math.max(0, size.rows - 1);
  const fits = nodes.length <= space;
  const shown = inOrder(nodes, state.sort ?? "Leaving").slice(
    0,
    fits ? space : Math.max(0, space - 1),
  );
  const more = cell(` and ${nodes.length - shown.length} more`, "dim");
  return [
    rowHeads(widths),
    ...shown.map((node) => nodeRow(node, { now, widths })),
    ...(fits ? [] : [[more]]),
  ];
}

function newsLines(
  news: readonly BoardNews[],
  { columns, rows }: BoardSize,
): readonly StyledLine[] {
  const shown = news.slice(0, Math.max(0, Math.min(mostNews, rows)));
  return shown.map(({ at, node, what, message }) => {
    const heads = [
      cell(` ${timeText(at).slice(11)}  `, "dim"),
      cell(`${what.padEnd(9)}  `, newsTone(what)),
    ];
    const text = message.startsWith(node) ? message : `${node}: ${message}`;
    return [...heads, cell(inWords(text, columns - widthOf(heads)))];
  });
}

/** As many whole words as fit: half of a number is another number. */
function inWords(text: string, columns: number): string {
  const [first = "", ...more] = wrapped(text, columns);
  if (more.length === 0) return first;
  return `${wrapped(text, columns - 2)[0] ?? ""} …`;
}

function newsTone(what: string): Tone {
  if (what === "Planned" || what === "Drained") return "good";
  return what === "Noticed" || what === "Expired" ? "bad" : "warn";
}

/** All keys, in as many lines as they take. */
function keyLines({ columns }: BoardSize): readonly StyledLine[] {
  const lines: StyledLine[] = [[]];
  for (const [key, does] of keyHelp) {
    const cells = [cell(` ${key}`, "strong"), cell(` ${does} `, "dim")];
    const last = lines.at(-1) ?? [];
    // The space behind the last one may be cut.
    const isFull = last.length > 0 && widthOf([...last, ...cells]) > columns + 1;
    if (isFull) lines.push(cells);
    else lines[lines.length - 1] = [...last, ...cells];
  }
  return lines;
}

/** `2026-11-20 00:04:31`. */
export function timeText(at: Instant): string {
  return formatInstant(at).slice(0, 19).replace("T", " ");
}
