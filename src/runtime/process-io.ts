import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { LastcallError, messageOf } from "../errors.ts";

/** The process's own streams, environment and files, in the form that commands take. */
export function processIo() {
  const { stdout, stderr, env } = process;
  const isTerminal = stdout.isTTY === true;
  return {
    out: (line: string) => void stdout.write(line),
    err: (line: string) => void stderr.write(line),
    isTerminal,
    // https://no-color.org: any value that is not empty.
    colour: isTerminal && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb",
    columns: stdout.columns ?? 100,
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

/** A reader that went away (`lastcall plan | head`) is no fault of ours; a full disk is one. */
export function endQuietlyOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    process.stderr.write(`lastcall: Cannot write to standard output: ${error.message}\n`);
    process.exit(1);
  });
}

/**
 * Keeps warnings of libraries from standard error whose cause an error of ours tells as well, such
 * as those of Google's about a metadata server that is away. Others are printed as before.
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

/** UTF-8, or the UTF-16 that a redirect of PowerShell writes; without a byte order mark. */
export function decodeText(bytes: Uint8Array): string {
  const utf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  return new TextDecoder(utf16 ? "utf-16le" : "utf-8").decode(bytes);
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
    const code = (error as NodeJS.ErrnoException).code;
    const found = code === "ENOENT" ? "its folder does not exist" : messageOf(error);
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
  const code = (error as NodeJS.ErrnoException).code;
  const found = { ENOENT: "it does not exist", EISDIR: "it is a directory" }[String(code)];
  return new LastcallError(
    "INPUT_UNREADABLE",
    `Cannot read ${path}: ${found ?? messageOf(error)}, expected a readable file`,
    { cause: error },
  );
}

/** A whole terminal for as long as it is open; what was on it before comes back at the end. */
interface TerminalScreen {
  size(): { readonly columns: number; readonly rows: number };
  draw(frame: string): void;
  /** Calls back when the terminal has another size; gives the way to stop it. */
  onResize(listener: () => void): () => void;
  close(): void;
}

/** The alternate screen, the cursor hidden; and back. */
const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";

/** Takes the terminal over. It is given back on `close`, and however the process ends by itself. */
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
 * What a terminal shows by its locale, as tmux and others ask it; Windows has none, and shows all.
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

/** The characters of frames, and one of ASCII for each: the columns stay as they are. */
const [drawn, inPlace] = ["▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·×│…↓↑", "_.:-=+*#---====.x|~v^"];
const stands = new Map([...drawn].map((character, place) => [character, inPlace[place] as string]));

/** For a terminal that knows ASCII alone, which would show each byte of the rest as a riddle. */
export function asciiText(text: string): string {
  return text.replace(/[\u0080-\u{10ffff}]/gu, (character) => stands.get(character) ?? "?");
}

/** Aborts at the first SIGINT or SIGTERM; at the second the process ends at once with 130. */
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
