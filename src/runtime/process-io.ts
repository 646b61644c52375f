import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { Clock } from "../contracts/clock.ts";
import type { Log, LogFields } from "../contracts/telemetry.ts";
import { escapedJson, printableLines } from "../core/json/printable-text.ts";
import { formatInstant } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";

/** The process's own streams, environment and files, in the form that commands take. */
export function processIo() {
  const { stdout, stderr, env } = process;
  const isTerminal = stdout.isTTY === true;
  return {
    out: (line: string) => void stdout.write(line),
    err: (line: string) => void stderr.write(printableLines(line)),
    isTerminal,
    // https://no-color.org: any non-empty value.
    colour: isTerminal && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb",
    columns: stdout.columns ?? 100,
    timeZone: localTimeZone(),
    openScreen: isTerminal && env.TERM !== "dumb" ? openTerminalScreen : undefined,
    env,
    fetch: globalThis.fetch,
    files: {
      readText,
      stdin: async () => decodeText(await buffer(process.stdin)),
      stdinBytes: () => process.stdin,
      writeText,
      appendText,
      writeTemporary,
    },
  };
}

/** UTC if `TZ` is empty, which is what POSIX means by that, or names no time zone. */
function localTimeZone(): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions() as { timeZone?: string };
  return timeZone === undefined || timeZone === "Etc/Unknown" ? "UTC" : timeZone;
}

/**
 * A reader that has gone (`lastcall plan | head`) is not an error; a full disk is. What the command
 * found still decides the exit code: findings of which `head` shows the first stay findings.
 */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") {
      // A command that has written all it has to say sets its exit code first.
      setImmediate(() => process.exit());
      return;
    }
    process.stderr.write(`lastcall: Cannot write to standard output: ${error.message}\n`);
    process.exit(1);
  });
}

/**
 * Suppresses warnings of libraries if one of our errors reports the same cause, such as Google's
 * about an unreachable metadata server. Other warnings are printed as before.
 */
export function silenceWarnings(...names: readonly string[]): void {
  const printers = process.listeners("warning");
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (names.includes(warning.name)) return;
    for (const print of printers) print(warning);
  });
}

async function readText(path: string): Promise<string> {
  try {
    return decodeText(await readFile(path));
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * UTF-8, or the UTF-16 that a redirect of PowerShell writes; without a byte order mark. Throws for
 * an archive, an image or a program, whose bytes nobody wants to see in a message.
 */
export function decodeText(bytes: Uint8Array): string {
  const utf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  const text = new TextDecoder(utf16 ? "utf-16le" : "utf-8").decode(bytes);
  if (text.includes("\0")) throw new Error("it is binary data");
  return text;
}

async function writeText(path: string, content: string): Promise<void> {
  await written(path, () => writeFile(path, content, { mode: 0o600 }));
}

async function appendText(path: string, content: string): Promise<void> {
  await written(path, () => appendFile(path, content, { mode: 0o600 }));
}

async function written(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const found = code === "ENOENT" ? "its folder does not exist" : fileFault(error);
    throw new LastcallError(
      "OUTPUT_UNWRITABLE",
      `Cannot write ${path}: ${found}, expected a file that can be written`,
      { cause: error },
    );
  }
}

async function writeTemporary(name: string, content: string) {
  const folder = await mkdtemp(join(tmpdir(), "lastcall-"));
  const path = join(folder, name);
  await writeFile(path, content, { mode: 0o600 });
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

function unreadable(path: string, error: unknown): LastcallError {
  if (/^https?:\/\//.test(path)) {
    return new LastcallError(
      "INPUT_UNREADABLE",
      `Cannot read ${path}: it is an address, expected a file, or -f - to read what curl prints`,
      { cause: error },
    );
  }
  return new LastcallError(
    "INPUT_UNREADABLE",
    `Cannot read ${path}: ${fileFault(error)}, expected a readable file`,
    { cause: error },
  );
}

/** The codes of Node's file errors that a user can fix, in words. */
const fileFaults: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of its path is not a directory",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the device",
};

/** Why a file could not be read or written, in words. */
export function fileFault(error: unknown): string {
  return fileFaults[String((error as NodeJS.ErrnoException).code)] ?? messageOf(error);
}

/** The whole terminal for as long as it is open; its previous content is restored at the end. */
interface TerminalScreen {
  size(): { readonly columns: number; readonly rows: number };
  draw(frame: string): void;
  /** Calls the listener when the terminal is resized. Returns the function that unsubscribes. */
  onResize(listener: () => void): () => void;
  close(): void;
}

/** Enters the alternate screen and hides the cursor; and back. */
const enter = "\u001b[?1049h\u001b[?25l";

const leave = "\u001b[?25h\u001b[?1049l";

/** Takes over the terminal. It is restored on `close`, or when the process exits on its own. */
function openTerminalScreen(): TerminalScreen {
  const { stdout, env, platform } = process;
  const isUnicode = showsUnicode(env, platform);
  let isOpen = true;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    process.off("exit", close);
    stdout.write(leave);
  };
  process.on("exit", close);
  stdout.write(enter);
  return {
    size: () => ({ columns: stdout.columns ?? 80, rows: stdout.rows ?? 24 }),
    draw: (frame) => {
      if (isOpen) stdout.write(isUnicode ? frame : asciiText(frame));
    },
    onResize: (listener) => {
      stdout.on("resize", listener);
      return () => stdout.off("resize", listener);
    },
    close,
  };
}

/**
 * Whether the terminal shows Unicode according to its locale, as tmux and others determine it.
 * Windows has no locale, and shows Unicode.
 */
export function showsUnicode(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
): boolean {
  if (platform === "win32") return true;
  const locale = [env.LC_ALL, env.LC_CTYPE, env.LANG].find(
    (one) => one !== undefined && one !== "",
  );
  return /utf-?8/i.test(locale ?? "");
}

/** The characters of frames, and an ASCII character for each, so that columns keep their widths. */
const [drawn, inPlace] = ["▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·×│…↓↑", "_.:-=+*#---====.x|~v^"];

const stands = new Map([...drawn].map((character, place) => [character, inPlace[place] as string]));

/** For a terminal that supports only ASCII, which would show each byte of the rest as garbage. */
export function asciiText(text: string): string {
  return text.replace(/[\u0080-\u{10ffff}]/gu, (character) => stands.get(character) ?? "?");
}

/** Aborts at the first SIGINT or SIGTERM; at the second, the process exits at once with 130. */
export function interruptSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new LastcallError("INTERRUPTED", `Interrupted by ${name}`));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return controller.signal;
}

/**
 * The I/O of a program that only writes lines, through the console: on Bun, `process.stderr` brings
 * 7 MiB of stream machinery with it.
 */
export function leanIo() {
  return {
    err: (text: string) => console.error(text.replace(/\n$/, "")),
    env: process.env,
    fetch: globalThis.fetch,
  };
}

const logLevels = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: "json" | "text";
  readonly write: (line: string) => void;
  readonly clock: Clock;
}

/** A log with one line per event: `time level event key=value …`, or the same as JSON. */
export function createLog(options: LogOptions): Log {
  const lowest = logLevels.indexOf(options.level);
  const at = (level: LogLevel) => {
    const rank = logLevels.indexOf(level);
    if (rank < lowest) return () => {};
    return (event: string, fields: LogFields = {}) => {
      const time = formatInstant(options.clock.now());
      options.write(
        options.format === "json"
          ? `${escapedJson({ time, level, event, ...fields })}\n`
          : `${time} ${level.padEnd(5)} ${event}${fieldsText(fields)}\n`,
      );
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function fieldsText(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${quoted(value)}`)
    .join("");
}

function quoted(value: unknown): string {
  const text = String(value);
  const inQuotes = escapedJson(text);
  return /^[^\s"=]+$/.test(text) && inQuotes === `"${text}"` ? text : inQuotes;
}
