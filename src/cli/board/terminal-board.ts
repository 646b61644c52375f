import type { BoardFeed } from "../../board/board-feed.ts";
import { reasonWords } from "../../board/reason-words.ts";
import {
  type BoardPicture,
  type BoardRow,
  heldByText,
  isHeldForGood,
  isKnown,
  type PastDeparture,
  type RowHold,
  withChange,
} from "../../board/stream.ts";
import { counted } from "../../core/reason/counted.ts";
import { between, formatInstant, type Instant, instant, seconds } from "../../core/time/time.ts";
import type { CommandIo, Screen } from "../command-line/command.ts";
import {
  ansiFrame,
  cell,
  clipped,
  type OpenKeyboard,
  openTerminalKeyboard,
  relativeTime,
  type StyledLine,
  shareBar,
  spanText,
  type Tone,
  wrapped,
} from "../command-line/terminal.ts";
import { dayAndTime, headlineLines } from "./terminal-headline.ts";

export interface TerminalLook {
  readonly columns: number;
  readonly rows: number;
  readonly sort: "Leaving" | "Name";
  /** How many nodes are scrolled out above the first that is shown. */
  readonly scroll: number;
}

export interface TerminalBoard {
  readonly lines: readonly StyledLine[];
  /** The scroll position in the list of nodes, and how many are shown at once. */
  readonly scroll: number;
  readonly page: number;
}

/** How many problems and past departures are listed; the rest are counted. */
const [mostMissing, mostPast] = [3, 6];
/** Nodes have at least this many lines before past departures get any. */
const fewestNodes = 5;

/** The board of a live cluster, in at most as many lines and columns as fit. */
export function terminalBoard(
  picture: BoardPicture,
  now: Instant,
  look: TerminalLook,
): TerminalBoard {
  const { columns, rows } = look;
  const isShown = isKnown(picture);
  const head = [
    ...headLines(picture, now),
    ...troubleLines(picture, { now, columns }),
    ...(isShown ? headlineLines(picture, { now, ...look }) : []),
    [],
  ];
  const foot = rows >= 8 ? [keyLine()] : [];
  const room = Math.max(2, rows - head.length - foot.length);
  const past = pastLines(picture.past, Math.min(mostPast, room - fewestNodes - 4));
  const table = nodeTable(isShown ? picture.rows : [], now, { ...look, rows: room - past.length });
  const used = head.length + table.lines.length + past.length + foot.length;
  const air = Array.from({ length: Math.max(0, rows - used) }, () => []);
  const lines = [...head, ...table.lines, ...past, ...air, ...foot];
  return { ...table, lines: lines.slice(0, rows).map((line) => clipped(line, columns)) };
}

/** The number of nodes is not shown before it is known. */
function headLines(picture: BoardPicture, now: Instant): readonly StyledLine[] {
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
    wrapped(text, columns - 2)
      .slice(0, 2)
      .map((line) => [cell(` ${line}`, tone)]),
  );
}

interface Table {
  readonly lines: readonly StyledLine[];
  readonly scroll: number;
  readonly page: number;
}

const [ageWidth, leavesWidth] = [7, 12];
/** With fewer columns, the reason a node leaves matters more than its age. */
const columnsForAge = 60;

function nodeTable(rows: readonly BoardRow[], now: Instant, look: TerminalLook): Table {
  const page = Math.max(1, look.rows - (rows.length > look.rows - 1 ? 2 : 1));
  const scroll = Math.max(0, Math.min(look.scroll, rows.length - page));
  const longest = Math.max(4, ...rows.map(({ node }) => node.length));
  const name = Math.min(longest, Math.max(12, Math.floor(look.columns / 3)));
  const shown = inOrder(rows, look.sort).slice(scroll, scroll + page);
  const below = rows.length - scroll - shown.length;
  const age = look.columns < columnsForAge ? "" : `${"AGE".padStart(ageWidth)}  `;
  const head = ` ${"NODE".padEnd(name)}  ${age}${"LEAVES".padEnd(leavesWidth)}WHY`;
  const more = [
    ...(scroll > 0 ? [`${scroll} above`] : []),
    ...(below > 0 ? [`${below} more below`] : []),
  ];
  return {
    ...{ scroll, page },
    lines: [
      [cell(head, "dim")],
      ...shown.map((row) => rowLine(row, { now, name, columns: look.columns })),
      ...(more.length === 0 ? [] : [[cell(` ${more.join(", ")}`, "dim")]]),
    ],
  };
}

/**
 * Departures under way first, then those on hold, then the next to leave, then nodes that stay; or
 * all by name.
 */
function inOrder(rows: readonly BoardRow[], sort: "Leaving" | "Name"): readonly BoardRow[] {
  const byName = rows.toSorted((a, b) => (a.node < b.node ? -1 : 1));
  return sort === "Name" ? byName : byName.toSorted((a, b) => rank(a) - rank(b));
}

function rank(row: BoardRow): number {
  const { state, noticedAt, departAt } = row;
  if (state === "Leaving") return noticedAt === null ? -3 : -4;
  if (isHeldForGood(row)) return -1;
  if (state === "Held") return -2;
  return state === "Stays" ? Number.MAX_SAFE_INTEGER : (departAt ?? Number.MAX_SAFE_INTEGER - 1);
}

function rowLine(
  row: BoardRow,
  at: { readonly now: Instant; readonly name: number; readonly columns: number },
): StyledLine {
  const { now, name, columns } = at;
  const tone = toneOf(row);
  const age = row.bornAt === null ? "" : spanText(Math.max(0, between(row.bornAt, now)));
  const [node = ""] = clipped([cell(row.node)], name).map(({ text }) => text);
  const shownName = row.node.length > name ? `${node}…` : node;
  return [
    cell(` ${shownName.padEnd(name)}  `, tone),
    cell(columns < columnsForAge ? "" : `${age.padStart(ageWidth)}  `, "plain"),
    cell(leavesText(row, now).padEnd(leavesWidth), tone),
    ...meter(row),
    cell(whyText(row, { now, isWide: columns >= 110 }), tone),
  ];
}

function toneOf(row: BoardRow): Tone {
  const { state, noticedAt } = row;
  if (state === "Leaving") return noticedAt === null ? "accent" : "bad";
  if (state === "Held" || isHeldForGood(row)) return "warn";
  return state === "Stays" ? "dim" : "plain";
}

function leavesText(row: BoardRow, now: Instant): string {
  const { state, noticedAt, departAt } = row;
  if (isHeldForGood(row)) return "on hold";
  if (state === "Leaving") return noticedAt === null ? "now" : "NOTICE";
  if (state === "Held") return "held";
  if (state === "Stays" || departAt === null) return "";
  return departAt <= now ? "due" : relativeTime(departAt, now);
}

const meterWidth = 6;

/** The share of pods that have left. */
function meter({ state, pods }: BoardRow): StyledLine {
  if (state !== "Leaving" || pods === null || pods.total === 0) return [];
  const share = (pods.total - pods.left) / pods.total;
  return [...shareBar(share, { width: meterWidth, tone: "good" }), cell(" ")];
}

/** A short text if there is little space, otherwise the core's sentence. */
function whyText(
  row: BoardRow,
  { now, isWide }: { readonly now: Instant; readonly isWide: boolean },
): string {
  const { state, phase, pods, deadlineAt, reason, plannedBy, heldBackTo, explain, hold } = row;
  if (state === "Leaving") {
    const left =
      pods === null ? (phase ?? "") : `${pods.left} of ${counted(pods.total, "pod")} left`;
    const deadline = deadlineAt === null ? "" : `, ${deadlineText(deadlineAt, now)}`;
    return `${left}${deadline}${blockedText(row, isWide)}`;
  }
  const held = reason === "OnHold" && hold !== null ? holdText(hold) : undefined;
  if (isWide) return held === undefined ? explain : `${held}: ${explain}`;
  if (held !== undefined) return held;
  if (heldBackTo !== null) return `held back, ${relativeTime(heldBackTo, now)}`;
  const why = state === "Scheduled" ? (plannedBy ?? reason) : reason;
  // A reason from a newer version has no text here.
  return reasonWords[why]?.en ?? why;
}

/** The budgets' part comes last in the description of a drain, and may be longer than the line. */
function blockedText({ pods, explain }: BoardRow, isWide: boolean): string {
  if (pods === null || pods.blocked === 0) return "";
  const by = isWide ? / is draining, (blocked by .+)\.$/s.exec(explain)?.[1] : undefined;
  return `, ${pods.blocked} ${by ?? "blocked"}`;
}

function holdText({ by, sinceAt, untilAt }: RowHold): string {
  const time = (at: Instant | null) => (at === null ? null : dayAndTime(at));
  return heldByText(by, time(sinceAt), time(untilAt));
}

function deadlineText(deadlineAt: Instant, now: Instant): string {
  const leftMs = between(now, deadlineAt);
  if (leftMs <= 0) return "past its deadline";
  const span = leftMs < 120_000 ? `${Math.ceil(leftMs / 1000)} s` : spanText(leftMs);
  return `${span} to go`;
}

function pastLines(past: readonly PastDeparture[], space: number): readonly StyledLine[] {
  const shown = past.slice(0, Math.max(0, space));
  if (shown.length === 0) return [];
  return [
    [],
    ...shown.map(({ endedAt, outcome, explain, node }) => [
      cell(` ${dayAndTime(instant(endedAt))}  `, "dim"),
      cell(`${outcome.padEnd(10)}  `, outcome === "Planned" ? "good" : "warn"),
      cell(explain.startsWith(node) ? explain : `${node}: ${explain}`),
    ]),
  ];
}

const keyHelp: readonly (readonly [key: string, does: string])[] = [
  ["↑ ↓ PgUp PgDn", "scroll"],
  ["s", "sort"],
  ["q", "quit"],
];

function keyLine(): StyledLine {
  return keyHelp.flatMap(([key, does]) => [cell(` ${key}`, "strong"), cell(` ${does} `, "dim")]);
}

interface TerminalBoardOptions {
  readonly feed: Pick<BoardFeed, "subscribe">;
  readonly screen: Screen;
  readonly io: Pick<CommandIo, "clock" | "colour">;
  /** Default: the terminal's own keyboard. */
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** The refresh interval: times count down by the second. */
const tickMs = seconds(1);

/** The board on a terminal that it takes over, until the user quits or the signal aborts. */
export async function showTerminalBoard(
  options: TerminalBoardOptions,
  signal: AbortSignal,
): Promise<void> {
  const { feed, screen, io, openKeyboard = openTerminalKeyboard } = options;
  const quit = new AbortController();
  const over = AbortSignal.any([signal, quit.signal]);
  let picture: BoardPicture | undefined;
  let place: Place = { sort: "Leaving", scroll: 0, page: 1 };
  const draw = (): void => {
    if (picture === undefined || over.aborted) return;
    const shown = terminalBoard(picture, io.clock.now(), { ...place, ...screen.size() });
    place = { ...place, scroll: shown.scroll, page: shown.page };
    screen.draw(ansiFrame(shown.lines, io));
  };
  const unsubscribe = feed.subscribe((message) => {
    if (message.kind === "Picture") ({ picture } = message);
    if (message.kind === "Change" && picture !== undefined)
      picture = withChange(picture, message.change);
    draw();
  });
  const stop = screen.onResize(draw);
  const keyboard = openKeyboard((text) => {
    if (isInterrupt(text)) process.kill(process.pid, "SIGINT");
    else if (text.toLowerCase() === "q") quit.abort();
    else place = moved(place, text);
    draw();
  });
  try {
    while (!over.aborted) {
      draw();
      await io.clock.sleep(tickMs, over).catch(() => undefined);
    }
  } finally {
    keyboard.close();
    stop();
    unsubscribe();
    screen.close();
  }
}

interface Place {
  readonly sort: "Leaving" | "Name";
  readonly scroll: number;
  /** How many nodes were last shown at once. */
  readonly page: number;
}

/** Ctrl-C and Ctrl-D, which a terminal in raw mode does not handle itself. */
function isInterrupt(text: string): boolean {
  return text === "\u0003" || text === "\u0004";
}

/** The view after a key; scrolling too far is corrected when it is drawn. */
function moved(place: Place, text: string): Place {
  const { scroll, page, sort } = place;
  switch (text) {
    case "\u001b[A":
    case "\u001bOA":
    case "k":
      return { ...place, scroll: scroll - 1 };
    case "\u001b[B":
    case "\u001bOB":
    case "j":
      return { ...place, scroll: scroll + 1 };
    case "\u001b[5~":
      return { ...place, scroll: scroll - page };
    case "\u001b[6~":
    case " ":
      return { ...place, scroll: scroll + page };
    case "\u001b[H":
      return { ...place, scroll: 0 };
    case "\u001b[F":
      return { ...place, scroll: Number.MAX_SAFE_INTEGER };
    case "s":
      return { ...place, scroll: 0, sort: sort === "Leaving" ? "Name" : "Leaving" };
    default:
      return place;
  }
}
