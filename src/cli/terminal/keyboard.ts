import { spawnSync } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { ReadStream } from "node:tty";

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
