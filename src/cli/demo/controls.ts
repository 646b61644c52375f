import { type DemoKey, demoKeyOf } from "../../board/demo-picture.ts";

/** What a person may say to the board in a terminal. */
export type Key = DemoKey | "Sort" | "Quit";

/** How the board is looked at; nothing of it changes what happens. */
export interface Controls {
  readonly paused: boolean;
  /** How many times as fast as `--speed`. */
  readonly times: number;
  readonly sort: "Leaving" | "Name";
  /** The clock runs until there is another event than this many. */
  readonly skipPast?: number | undefined;
}

export const firstControls: Controls = Object.freeze({ paused: false, times: 1, sort: "Leaving" });

/** Of a terminal alone. */
const terminalKeys: Readonly<Record<string, Key>> = {
  s: "Sort",
  q: "Quit",
  // Ctrl-C and Ctrl-D, which a terminal that gives every key no longer acts upon itself.
  "\u0003": "Quit",
  "\u0004": "Quit",
};

/**
 * What was pressed; nothing for keys without a meaning, and for the sequences of arrows and mice.
 */
export function keysIn(text: string): readonly Key[] {
  if (text.startsWith("\u001b")) return [];
  return [...text].flatMap((char) => demoKeyOf(char) ?? terminalKeys[char.toLowerCase()] ?? []);
}

/** All of them, as the board shows them. */
export const keyHelp: readonly (readonly [key: string, does: string])[] = [
  ["space", "pause"],
  ["+ -", "speed"],
  ["n", "next event"],
  ["i", "interrupt a node"],
  ["s", "sort"],
  ["q", "quit"],
];

/** Doubling goes so far; what is faster than the machine is as fast as it can be. */
const [slowest, fastest] = [1 / 64, 64];

/** The controls after a key; `events` is how many there have been. */
export function pressed(controls: Controls, key: Key, events: number): Controls {
  switch (key) {
    case "Pause":
      return { ...controls, paused: !controls.paused, skipPast: undefined };
    case "Faster":
      return { ...controls, times: Math.min(fastest, controls.times * 2) };
    case "Slower":
      return { ...controls, times: Math.max(slowest, controls.times / 2) };
    case "NextEvent":
      return { ...controls, paused: false, skipPast: events };
    case "Sort":
      return { ...controls, sort: controls.sort === "Leaving" ? "Name" : "Leaving" };
    // One who interrupts a node wants to see it.
    case "Interrupt":
      return { ...controls, paused: false, skipPast: undefined };
    case "Quit":
      return controls;
  }
}
