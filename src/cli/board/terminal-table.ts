import { cutName } from "../../board/name-parts.ts";
import { briefReason, reasonWords } from "../../board/reason-words.ts";
import {
  type BoardPicture,
  type BoardRow,
  heldByText,
  isDryRun,
  isHeldForGood,
  type RowHold,
} from "../../board/stream.ts";
import { compareNames } from "../../core/cluster/name-order.ts";
import { counted } from "../../core/reason/counted.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { between, type Instant } from "../../core/time/time.ts";
import {
  cell,
  relativeTime,
  type StyledLine,
  shareBar,
  spanText,
  type Tone,
} from "../command-line/terminal.ts";
import { dayAndTime } from "./terminal-headline.ts";

export type TerminalSort = "Leaving" | "Name";

interface TableLook {
  readonly picture: Pick<BoardPicture, "policies">;
  readonly now: Instant;
  readonly columns: number;
  /** Including the heads of the columns. */
  readonly rows: number;
  /** How many rows are scrolled out above the first that is shown. */
  readonly scroll: number;
  /** The place of the selected row; without one, none is marked. */
  readonly cursor?: number | undefined;
}

interface Table {
  readonly lines: readonly StyledLine[];
  readonly scroll: number;
  /** How many rows are shown at once. */
  readonly page: number;
}

/** A column between the node's name and the reason, which takes what is left of the line. */
interface Column {
  readonly head: string;
  /** The fewest columns of the terminal with which it is shown. */
  readonly from: number;
  /** The widest that it becomes. */
  readonly most: number;
  readonly align: "Left" | "Right";
  textOf(row: BoardRow, now: Instant): string;
}

const columnsForDeadline = 120;

/** With few columns, the reason a node leaves matters more than its age. */
const tableColumns: readonly Column[] = [
  {
    ...{ head: "AGE", from: 60, most: 7, align: "Right" },
    textOf: ({ bornAt }, now) =>
      bornAt === null ? "" : spanText(Math.max(0, between(bornAt, now))),
  },
  { ...{ head: "ZONE", from: 100, most: 16, align: "Left" }, textOf: ({ zone }) => zone },
  { ...{ head: "POOL", from: 150, most: 20, align: "Left" }, textOf: ({ pool }) => pool },
  {
    ...{ head: "POLICY", from: 170, most: 16, align: "Left" },
    textOf: ({ policy }) => policy ?? "",
  },
  {
    ...{ head: "DEADLINE", from: columnsForDeadline, most: 12, align: "Left" },
    textOf: ({ deadlineAt }, now) => (deadlineAt === null ? "" : relativeTime(deadlineAt, now)),
  },
];

const leavesWidth = 12;
/** With fewer columns, or less space for the reason, a few words stand for the core's sentence. */
const [columnsForSentence, spaceForSentence] = [110, 50];

/** The most columns of a node's name. */
export function nameWidth(columns: number): number {
  return Math.max(12, Math.floor(columns / 3));
}

/** The rows from `scroll` on, as many as fit. */
export function nodeTable(rows: readonly BoardRow[], look: TableLook): Table {
  const { picture, columns, now, cursor } = look;
  const page = Math.max(1, look.rows - (rows.length > look.rows - 1 ? 2 : 1));
  const scroll = Math.max(0, Math.min(scrollFor(look, page), rows.length - page));
  const longest = Math.max(4, ...rows.map(({ node }) => node.length));
  const name = Math.min(longest, nameWidth(columns));
  const shown = rows.slice(scroll, scroll + page);
  const below = rows.length - scroll - shown.length;
  const middle = tableColumns
    .filter(({ from }) => columns >= from)
    .map((one) => ({ ...one, width: widthOf(one, { rows, now }) }));
  const heads = middle.map(({ head, width, align }) => `${padded(head, width, align)}  `);
  const head = ` ${"NODE".padEnd(name)}  ${heads.join("")}${"LEAVES".padEnd(leavesWidth)}WHY`;
  const more = [
    ...(scroll > 0 ? [`${scroll} above`] : []),
    ...(below > 0 ? [`${below} more below`] : []),
  ];
  return {
    ...{ scroll, page },
    lines: [
      [cell(head, "dim")],
      ...shown.map((row, index) =>
        rowLine(row, {
          ...{ now, name, middle, columns, isSelected: scroll + index === cursor },
          isTried: isDryRun(row, picture),
        }),
      ),
      ...(more.length === 0 ? [] : [[cell(` ${more.join(", ")}`, "dim")]]),
    ],
  };
}

/** The selected row stays in view. */
function scrollFor({ scroll, cursor }: TableLook, page: number): number {
  if (cursor === undefined) return scroll;
  return Math.min(cursor, Math.max(scroll, cursor - page + 1));
}

function widthOf(
  { head, most, textOf }: Column,
  { rows, now }: { readonly rows: readonly BoardRow[]; readonly now: Instant },
): number {
  if (most <= 7) return most;
  const longest = rows.reduce((width, row) => Math.max(width, textOf(row, now).length), 0);
  return Math.min(most, Math.max(head.length, longest));
}

function padded(text: string, width: number, align: Column["align"]): string {
  return align === "Right" ? text.padStart(width) : text.padEnd(width);
}

/**
 * Departures under way first, then those on hold, then the next to leave, then nodes that stay; or
 * all by name.
 */
export function inOrder(rows: readonly BoardRow[], sort: TerminalSort): readonly BoardRow[] {
  const byName = rows.toSorted((a, b) => compareNames(a.node, b.node));
  return sort === "Name" ? byName : byName.toSorted((a, b) => rank(a) - rank(b));
}

function rank(row: BoardRow): number {
  const { state, noticedAt, departAt } = row;
  if (state === "Leaving") return noticedAt === null ? -3 : -4;
  if (isHeldForGood(row)) return -1;
  if (state === "Held") return -2;
  return state === "Stays" ? Number.MAX_SAFE_INTEGER : (departAt ?? Number.MAX_SAFE_INTEGER - 1);
}

interface RowLook {
  readonly now: Instant;
  readonly columns: number;
  /** The width of the node's name. */
  readonly name: number;
  readonly middle: readonly (Column & { readonly width: number })[];
  readonly isSelected: boolean;
  /** Its departure is only planned, and never carried out. */
  readonly isTried: boolean;
}

function rowLine(row: BoardRow, look: RowLook): StyledLine {
  const { now, name, columns, middle, isSelected, isTried } = look;
  const tone = isTried ? "dim" : toneOf(row);
  const before = middle.reduce((sum, { width }) => sum + width + 2, 1 + name + 2);
  const space = columns - before - leavesWidth;
  return [
    // A mark that does not need colour.
    cell(isSelected ? ">" : " ", "strong"),
    cell(`${cutName(row.node, name).padEnd(name)}  `, isSelected ? "strong" : tone),
    ...middle.map(({ textOf, width, align }) =>
      cell(`${padded(cutName(textOf(row, now), width), width, align)}  `),
    ),
    cell(leavesText(row, now).padEnd(leavesWidth), tone),
    ...meter(row),
    cell(`${isTried ? "Dry run: " : ""}${whyText(row, { now, columns, space })}`, tone),
  ];
}

export function toneOf(row: BoardRow): Tone {
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
  {
    now,
    columns,
    space,
  }: { readonly now: Instant; readonly columns: number; readonly space: number },
): string {
  const isWide = columns >= columnsForSentence && space >= spaceForSentence;
  const { state, phase, pods, deadlineAt, reason, heldBackTo, frozenUntil, explain, hold } = row;
  if (state === "Leaving") {
    const there = isWide ? "still there" : "there";
    const left =
      pods === null ? (phase ?? "") : `${pods.left} of ${counted(pods.total, "pod")} ${there}`;
    const deadline =
      deadlineAt === null || columns >= columnsForDeadline
        ? ""
        : `, ${deadlineText(deadlineAt, now)}`;
    return `${left}${deadline}${blockedText(row, isWide)}`;
  }
  if (frozenUntil !== null && state === "Scheduled") {
    return `frozen for ${spanText(between(now, frozenUntil))}`;
  }
  const held = reason === "OnHold" && hold !== null ? holdText(hold) : undefined;
  // The line begins with the name already.
  const whole = inEnglish(explain);
  const sentence = whole.startsWith(`${row.node} `) ? whole.slice(row.node.length + 1) : whole;
  if (isWide && adds(row, { sentence, space })) {
    return held === undefined ? sentence : `${held}: ${sentence}`;
  }
  if (held !== undefined) return held;
  const expected = heldBackTo === null ? "" : relativeTime(heldBackTo, now);
  if (expected !== "" && state === "Scheduled") return `held back, ${expected}`;
  // A reason from a newer version has no text here.
  const why = state === "Scheduled" ? briefReason(row) : reason;
  const words = reasonWords[why] ?? why;
  return expected === "" ? words : `${words}, expected ${expected}`;
}

/** A planned row has the instants of the sentence in its columns. */
function adds(
  { state, plannedBy }: BoardRow,
  { sentence, space }: { readonly sentence: string; readonly space: number },
): boolean {
  if (state !== "Scheduled") return true;
  return plannedBy !== "Spaced" && sentence.length <= space;
}

/** The budgets' part comes last in the description of a drain, and may be longer than the line. */
function blockedText({ pods, explain }: BoardRow, isWide: boolean): string {
  if (pods === null || pods.blocked === 0) return "";
  const by = isWide ? / is draining, (blocked by .+)\.$/s.exec(inEnglish(explain))?.[1] : undefined;
  return `, ${pods.blocked} ${by ?? "blocked"}`;
}

export function holdText({ by, sinceAt, untilAt }: RowHold): string {
  const time = (at: Instant | null) => (at === null ? null : dayAndTime(at));
  return heldByText(by, time(sinceAt), time(untilAt));
}

function deadlineText(deadlineAt: Instant, now: Instant): string {
  const leftMs = between(now, deadlineAt);
  if (leftMs <= 0) return "past its deadline";
  const span = leftMs < 120_000 ? `${Math.ceil(leftMs / 1000)} s` : spanText(leftMs);
  return `${span} to go`;
}
