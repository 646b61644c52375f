import { spawnSync } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { ReadStream } from "node:tty";
import { printable, printableLines } from "../../core/json/printable-text.ts";
import { between, type Instant } from "../../core/time/time.ts";

/** Columns as kubectl prints them: upper-case headings, three spaces between, left-aligned. */
export function formatTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [heads, ...rows].map((row) => row.map(printableLines));
  const widths = heads.map((_, column) =>
    Math.max(...all.map((row) => shownWidth(row[column] ?? ""))),
  );
  return all
    .map((row) =>
      row
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - shownWidth(cell)))
        .join("   ")
        .trimEnd(),
    )
    .join("\n")
    .concat("\n");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with ESC.
const escapes = /\u001b\[[0-9;]*m/g;

function shownWidth(cell: string): number {
  return cell.replaceAll(escapes, "").length;
}

/** Folds a text into lines of at most `width`. Words are kept whole, however long. */
export function folded(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** An instant relative to another: `in 3h12m`, `now`, `5m ago`. */
export function relativeTime(at: Instant, from: Instant): string {
  const spanMs = between(from, at);
  if (Math.abs(spanMs) < 1000) return "now";
  return spanMs < 0 ? `${spanText(-spanMs)} ago` : `in ${spanText(spanMs)}`;
}

/** At most two units: `45s`, `12m`, `3h04m`, `6d2h`. */
export function spanText(spanMs: number): string {
  const wholeSeconds = Math.floor(spanMs / 1000);
  if (wholeSeconds < 60) return `${wholeSeconds}s`;
  const wholeMinutes = Math.floor(wholeSeconds / 60);
  if (wholeMinutes < 60) return `${wholeMinutes}m`;
  const wholeHours = Math.floor(wholeMinutes / 60);
  if (wholeHours < 48) return `${wholeHours}h${String(wholeMinutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(wholeHours / 24)}d${wholeHours % 24}h`;
}

/** The meaning of a piece of text; the renderer decides how it looks. */
export type Tone = "plain" | "dim" | "strong" | "good" | "accent" | "warn" | "bad";

export interface Cell {
  readonly text: string;
  readonly tone: Tone;
}

/** A line of text in pieces. */
export type StyledLine = readonly Cell[];

/** Names and messages from a cluster are untrusted text. */
export function cell(text: string, tone: Tone = "plain"): Cell {
  return { text: printable(text), tone };
}

export function widthOf(line: StyledLine): number {
  return line.reduce((sum, { text }) => sum + columnsOf(text), 0);
}

/** Latin, punctuation, arrows, blocks: one column each. */
const narrow = /^[\u0020-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u25ff]*$/;

/** Characters two columns wide: East Asian ones and emoji. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

/** Combining characters, drawn over the one before. */
const combining = /^[\p{Mn}\p{Me}]$/u;

/** The number of terminal columns that a text takes. */
function columnsOf(text: string): number {
  if (narrow.test(text)) return text.length;
  return [...text].reduce((sum, character) => sum + columnsOfOne(character), 0);
}

function columnsOfOne(character: string): number {
  if (combining.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** The longest prefix of a text that takes at most this many columns. */
function firstColumns(text: string, columns: number): string {
  if (narrow.test(text)) return text.slice(0, columns);
  let [kept, space] = ["", columns];
  for (const character of text) {
    space -= columnsOfOne(character);
    if (space < 0) break;
    kept += character;
  }
  return kept;
}

/** The line cut to `columns` columns; one that is cut ends with `…`. */
export function clipped(line: StyledLine, columns: number): StyledLine {
  if (widthOf(line) <= columns) return line;
  const kept: Cell[] = [];
  let space = columns - 1;
  for (const one of line) {
    if (space <= 0) break;
    kept.push({ ...one, text: firstColumns(one.text, space) });
    space -= columnsOf(one.text);
  }
  return columns < 1 ? [] : [...kept, cell("…", "dim")];
}

/** Blocks from none to seven eighths of a column. */
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** A bar filled to `share` of its width, with a resolution of an eighth of a column. */
export function shareBar(
  share: number,
  look: { readonly width: number; readonly tone: Tone },
): readonly Cell[] {
  const { width, tone } = look;
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  const text = "█".repeat(Math.floor(filled / 8)) + (eighths[filled % 8] ?? "");
  return [cell(text, tone), cell("·".repeat(width - text.length), "dim")];
}

/** The text wrapped to lines of at most `columns` columns; a longer word has its own line. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    const isFull = last === undefined || columnsOf(last) + 1 + columnsOf(word) > columns;
    if (isFull) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/**
 * The text in at most so many lines. What does not fit is left out from the end of a part of the
 * sentence on, because half of one says something else.
 */
export function wrappedTo(
  text: string,
  { columns, lines: most }: { readonly columns: number; readonly lines: number },
): readonly string[] {
  const all = wrapped(text, columns);
  if (all.length <= most) return all;
  const lines = wrapped(text, columns - 2).slice(0, most);
  const last = lines.pop() ?? "";
  const [whole = last] = /^.*[;:,.)](?= |$)/.exec(last) ?? [];
  return [...lines, `${whole} …`];
}

/** The text alone, for plain output and for tests. */
export function plainText(line: StyledLine): string {
  return line.map(({ text }) => text).join("");
}

const esc = "\u001b[";

/** The sixteen colours that every terminal has, so that the user's theme is kept. */
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
 * One frame for a terminal: each line is written over the old one and cleared to its end, and the
 * rest of the screen is cleared last, so that nothing flickers. Terminals with synchronized output
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

/** The keys of the terminal, until closed. */
export interface Keyboard {
  close(): void;
}

/** Called with one key at a time: its character, or the escape sequence of a key without one. */
export type OpenKeyboard = (onText: (text: string) => void) => Keyboard;

/**
 * Reads the keys one by one from the terminal itself, whatever stdin is. Without a terminal there
 * are no keys, and the board is still shown.
 */
export function openTerminalKeyboard(onText: (text: string) => void): Keyboard {
  const stream = openTerminal();
  if (stream === undefined) return { close: () => {} };
  const close = (): void => {
    process.off("exit", close);
    stream.setRawMode(false);
    stream.destroy();
  };
  process.on("exit", close);
  stream.setRawMode(true);
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    for (const key of keysOf(text)) onText(key);
  });
  // A terminal that closes is reported by SIGHUP.
  stream.on("error", () => {});
  return { close };
}

const keyPattern = new RegExp(`${"\u001b"}\\[[\\d;]*[A-Za-z~]|${"\u001b"}O[A-Z]|[^]`, "g");

/**
 * Splits typed text into keys: a terminal may send several at once, and arrows as escape sequences.
 */
export function keysOf(text: string): readonly string[] {
  return text.match(keyPattern) ?? [];
}

/**
 * Reads the terminal while this process is in its foreground: the shell stops a background process
 * that reads, and `lastcall board &` should continue. Returns the function that stops it; undefined
 * for a process started in the background, because a shell does not report when that changes.
 */
export function onTerminalLine(listener: () => void): (() => void) | undefined {
  if (!isInForeground()) return undefined;
  let stream: ReadStream | undefined;
  const close = (): void => {
    stream?.destroy();
    stream = undefined;
  };
  const open = (): void => {
    close();
    stream = isInForeground() ? openTerminal() : undefined;
    stream?.on("data", () => listener());
    // A terminal that closes is reported by SIGHUP.
    stream?.on("error", () => {});
  };
  process.on("SIGCONT", open);
  open();
  return () => {
    process.off("SIGCONT", open);
    close();
  };
}

/** Whether input on the terminal is for this process's group. */
function isInForeground(): boolean {
  try {
    // After the name in parentheses: state, parent, group, session, terminal, its foreground group.
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return group === foreground;
  } catch {
    const asked = spawnSync("ps", ["-o", "stat=", "-p", String(process.pid)], { encoding: "utf8" });
    return String(asked.stdout).includes("+");
  }
}

function openTerminal(): ReadStream | undefined {
  try {
    return new ReadStream(openSync("/dev/tty", "r"));
  } catch {
    return undefined;
  }
}
