import {
  type BoardNews,
  type BoardNotice,
  type BoardPod,
  type DemoPicture,
  storyText,
} from "../../board/demo-picture.ts";
import type { WindowState } from "../../core/limits/windows.ts";
import { counted } from "../../core/reason/counted.ts";
import { between, formatInstant, type Instant } from "../../core/time/time.ts";
import {
  type Cell,
  cell,
  clipped,
  type StyledLine,
  shareBar,
  spanText,
  type Tone,
  widthOf,
  wrapped,
} from "../command-line/terminal.ts";
import { figureHelp, inOrder, nodeRow, rowHeads, rowWidths, totalLines } from "./board-row.ts";
import { keyHelp, momentText } from "./controls.ts";

/** What is shown, and how the user views it in a terminal. */
export interface BoardState extends DemoPicture {
  readonly sort?: "Leaving" | "Name" | undefined;
  /** Whether keys work, so that they are shown. */
  readonly hasKeys?: boolean | undefined;
  /** The path of the kubeconfig for kubectl in a second terminal. */
  readonly kubeconfig: string;
  /** Address of the same board in a browser. */
  readonly address?: string | undefined;
}

export interface BoardSize {
  readonly columns: number;
  readonly rows: number;
}

const [fewestNews, mostNews] = [3, 8];
/** With at least this many rows all parts of the board fit. */
const wholeRows = 20;
/** With at least this many, all pods of a notice fit beside them. */
const roomyRows = 30;
/** During a notice: the headings, the node that is taken, and how many more there are. */
const fewestNodeLines = 3;

/**
 * The board in at most as many lines as fit. The fleets and their outcomes are always shown;
 * windows, forecast, events and keys from 20 rows on; the remaining rows are for the nodes, the
 * next to leave first.
 */
export function board(state: BoardState, size: BoardSize): readonly StyledLine[] {
  const isWhole = size.rows >= wholeRows;
  // If space is short, the pods of a notice take precedence.
  const hasRoom = state.notice === undefined || size.rows >= roomyRows;
  const hasHelp = isWhole && hasRoom && widthOf(figureHelp) <= size.columns;
  const head = [
    ...headLines(state, size),
    ...totalLines(state, size),
    ...(hasHelp ? [figureHelp] : []),
    ...(isWhole ? policyLines(state, size.columns) : []),
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

/**
 * Text to copy is shown in full, on as many lines as it takes; its purpose only if it fits beside
 * it.
 */
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

function speedCells({ speed, moment, paused, isReading }: BoardState): StyledLine {
  if (isReading) return [cell("PAUSED while a node's page is open", "warn")];
  if (paused) return [cell("PAUSED", "warn")];
  const rounded = speed < 10 ? Math.round(speed * 10) / 10 : Math.round(speed);
  const why = momentText(moment);
  const text = why === "" ? `${rounded}x` : `${rounded}x (${why})`;
  return [cell(text, why === "" ? "plain" : "accent")];
}

/** Each policy's windows and forecast, or in as many lines why it cannot be read. */
function policyLines({ policies, now }: BoardState, columns: number): readonly StyledLine[] {
  return policies.flatMap(({ name, windows, forecast, problem }) => {
    const head = cell(` policy ${name}  `, "strong");
    if (problem !== undefined) return brokenLines({ name, problem, forecast }, columns);
    return [
      [head, cell(windowText(windows, now), windowTone(windows))],
      [cell(`${indentOf(name)}${forecast}`, "dim")],
    ];
  });
}

function brokenLines(
  policy: { readonly name: string; readonly problem: string; readonly forecast: string },
  columns: number,
): readonly StyledLine[] {
  const { name, problem, forecast } = policy;
  const [first = "", ...rest] = wrapped(problem, columns - indentOf(name).length - 1);
  return [
    [cell(` policy ${name}  `, "strong"), cell(first, "bad")],
    ...rest.map((line) => [cell(`${indentOf(name)}${line}`, "bad")]),
    [cell(`${indentOf(name)}${forecast}`, "dim")],
  ];
}

/** The width of the text beside a policy's name. */
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

/** Audit, notice, nodes and events share the rest of the screen, separated by empty lines. */
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

/** The audit's verdict on each policy's workloads, unless it would take a node's line. */
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

/** As many whole words as fit: a truncated number would be a different number. */
function inWords(text: string, columns: number): string {
  const [first = "", ...more] = wrapped(text, columns);
  if (more.length === 0) return first;
  return `${wrapped(text, columns - 2)[0] ?? ""} …`;
}

function newsTone(what: string): Tone {
  if (what === "Planned" || what === "Drained") return "good";
  return what === "Noticed" || what === "Expired" ? "bad" : "warn";
}

/** All keys, on as many lines as they take. */
function keyLines({ columns }: BoardSize): readonly StyledLine[] {
  const lines: StyledLine[] = [[]];
  for (const [key, does] of keyHelp) {
    const cells = [cell(` ${key}`, "strong"), cell(` ${does} `, "dim")];
    const last = lines.at(-1) ?? [];
    // The space after the last one may be cut.
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

interface NoticeClock {
  readonly now: Instant;
  readonly notice: BoardNotice;
  readonly width: number;
}

/** With fewer columns only each pod's state fits, without a bar. */
const columnsForBars = 60;
/** Width of `terminated after 20s` and the space around it. */
const stateWidth = 25;

/**
 * A notice pod by pod: each line spans the time from the notice to the shutdown, and is filled from
 * when the pod was told to terminate until it had. Pods that still run come first if not all fit.
 */
export function noticeLines(
  notice: BoardNotice,
  at: { readonly now: Instant; readonly columns: number; readonly rows: number },
): readonly StyledLine[] {
  const hasBars = at.columns >= columnsForBars;
  const width = hasBars ? Math.max(8, Math.min(40, at.columns - 56)) : 0;
  const clock = { now: at.now, notice, width };
  const space = Math.max(1, at.rows - (notice.twinPods === undefined ? 1 : 2));
  const isWhole = notice.pods.length <= space;
  const pods = notice.pods.toSorted((a, b) => Number(hasEnded(a)) - Number(hasEnded(b)));
  const shown = isWhole ? notice.pods : pods.slice(0, space - 1);
  const longest = Math.max(0, ...notice.pods.map(({ name }) => name.length));
  const nameWidth = hasBars ? longest : Math.min(longest, at.columns - stateWidth);
  const rest = notice.pods.length - shown.length;
  return [
    headLine(clock),
    ...shown.map((pod) => podLine(pod, { ...clock, nameWidth })),
    ...(isWhole ? [] : [[cell(`   and ${rest} more`, "dim")]]),
    ...(notice.twinPods === undefined ? [] : [twinLine(notice.twinPods)]),
  ];
}

function headLine({ now, notice }: NoticeClock): StyledLine {
  const { node, deadlineAt, goneAt, pods } = notice;
  const leftMs = between(now, deadlineAt);
  const ended = pods.filter(hasEnded).length;
  const clock = goneAt !== undefined ? "is gone" : leftMs > 0 ? shutdownText(leftMs) : shuttingDown;
  return [
    cell(` NOTICE  ${node} ${clock}`, "bad"),
    cell(
      pods.length === 0 ? "   no pods" : `   ${ended} of ${counted(pods.length, "pod")} terminated`,
      ended === pods.length ? "good" : "plain",
    ),
  ];
}

const shuttingDown = "is shutting down";

function shutdownText(leftMs: number): string {
  return `shuts down in ${Math.ceil(leftMs / 1000)} s`;
}

function podLine(pod: BoardPod, clock: NoticeClock & { readonly nameWidth: number }): StyledLine {
  const { text, tone } = podState(pod, clock.now);
  const [name] = clipped([cell(pod.name)], clock.nameWidth);
  const more = pod.name.length > clock.nameWidth ? "…" : "";
  return [
    cell(`   ${`${name?.text ?? ""}${more}`.padEnd(clock.nameWidth)}  `),
    ...(clock.width === 0 ? [] : [...podBar(pod, { ...clock, tone }), cell("  ")]),
    cell(text, tone),
  ];
}

function podBar(
  { terminatingAt, endedAt }: BoardPod,
  { now, notice, width, tone }: NoticeClock & { readonly tone: Tone },
): readonly Cell[] {
  const spanMs = between(notice.noticedAt, notice.deadlineAt);
  const share = (at: Instant): number => between(notice.noticedAt, at) / spanMs;
  const start = terminatingAt === undefined ? 1 : Math.min(1, share(terminatingAt));
  const before = Math.floor(start * width);
  const length = terminatingAt === undefined ? 0 : share(endedAt ?? now) - start;
  const bar = shareBar((length * width) / Math.max(1, width - before), {
    ...{ width: width - before, tone },
  });
  return [cell("·".repeat(before), "dim"), ...bar];
}

function podState(
  { terminatingAt, endedAt, isKilled }: BoardPod,
  now: Instant,
): { text: string; tone: Tone } {
  if (isKilled) return { text: "killed", tone: "bad" };
  if (terminatingAt === undefined) return { text: "running", tone: "plain" };
  if (endedAt === undefined) {
    return { text: `terminating for ${spanText(between(terminatingAt, now))}`, tone: "accent" };
  }
  return { text: `terminated after ${spanText(between(terminatingAt, endedAt))}`, tone: "good" };
}

/** What happens to the same pods if nobody acts on the notice. */
function twinLine(pods: readonly BoardPod[]): StyledLine {
  const { text, tone } = twinState(pods);
  return [cell(`   without Lastcall: ${text}`, tone)];
}

function twinState(pods: readonly BoardPod[]): { readonly text: string; readonly tone: Tone } {
  const running = pods.filter(({ terminatingAt }) => terminatingAt === undefined).length;
  const killed = pods.filter(({ isKilled }) => isKilled).length;
  if (pods.length === 0) return { text: "no pods", tone: "plain" };
  if (running > 0) {
    const keep = running === 1 ? "1 pod keeps" : `${running} pods keep`;
    return { text: `${keep} running, unaware of the notice`, tone: "warn" };
  }
  if (killed > 0)
    return { text: `${killed} of ${counted(pods.length, "pod")} killed`, tone: "bad" };
  return pods.every(hasEnded)
    ? { text: "no pod killed", tone: "plain" }
    : { text: "the shutdown terminates its pods, with 15 s for all of them", tone: "warn" };
}

function hasEnded({ endedAt }: BoardPod): boolean {
  return endedAt !== undefined;
}
