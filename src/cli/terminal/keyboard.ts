import { spawnSync } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { ReadStream } from "node:tty";

/** The keys of the terminal, until it is closed. */
export interface Keyboard {
  close(): void;
}

/** Told of one key at a time: its character, or the sequence of a key without one. */
export type OpenKeyboard = (onText: (text: string) => void) => Keyboard;

/**
 * Reads the keys one by one from the terminal itself, whatever stdin is. Without one there are
 * none: the board is to be looked at all the same.
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
  // A terminal that went away is told by SIGHUP.
  stream.on("error", () => {});
  return { close };
}

const keyPattern = new RegExp(`${"\u001b"}\\[[\\d;]*[A-Za-z~]|${"\u001b"}O[A-Z]|[^]`, "g");

/** What was typed, key by key: a terminal may give several at once, and arrows as sequences. */
export function keysOf(text: string): readonly string[] {
  return text.match(keyPattern) ?? [];
}

/**
 * Reads the terminal's lines while this process is in its foreground: one in the background that
 * reads is stopped by the shell, and `lastcall board &` is to go on. Gives the way to stop it;
 * undefined where it was started in the background, of which a shell says nothing when it ends.
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
    // A terminal that went away is told by SIGHUP.
    stream?.on("error", () => {});
  };
  process.on("SIGCONT", open);
  open();
  return () => {
    process.off("SIGCONT", open);
    close();
  };
}

/** Whether what is typed on the terminal is meant for this process's group. */
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
