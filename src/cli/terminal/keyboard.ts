import { openSync } from "node:fs";
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

function openTerminal(): ReadStream | undefined {
  try {
    return new ReadStream(openSync("/dev/tty", "r"));
  } catch {
    return undefined;
  }
}
