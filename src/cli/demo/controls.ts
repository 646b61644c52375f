import { type DemoKey, demoKeyOf, type Moment } from "../../board/demo-picture.ts";
import { between, type Instant } from "../../core/time/time.ts";

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

/** What there is to see in the two fleets, as far as it decides how fast the clock goes. */
export interface Pulse {
  readonly now: Instant;
  readonly startedAt: Instant;
  /** Pods that still have to leave a machine of Lastcall's fleet after its notice. */
  readonly podsUnderNotice: number;
  /** When the machine that was noticed last shuts down. */
  readonly shutdownAt?: Instant | undefined;
  /** How many notices there have been in it, this one too. */
  readonly noticed: number;
  /** Whether a person asked for the latest of them, to see it. */
  readonly isAskedFor: boolean;
  /** Nodes that leave as planned now, and how many have left so before. */
  readonly draining: number;
  readonly departed: number;
  /** Machines that the cloud takes just now, in either fleet. */
  readonly losses: number;
  /** When the next node is to leave as planned. */
  readonly nextAt?: Instant | undefined;
}

/** Time to read what is on the screen before anything happens. */
const openingMs = 240_000;
/** From the shutdown until the power is off, and a while to read what came of it. */
const shutdownMs = 115_000;
/** So long before a node leaves the clock slows down, to be seen. */
const soonMs = 30_000;
/** After so many departures, and one notice, everybody knows what one looks like. */
const shownDepartures = 2;

/** What there is to see now; the rarest first. */
export function momentOf(pulse: Pulse): Moment {
  const { now, startedAt, nextAt } = pulse;
  if (pulse.podsUnderNotice > 0) return "Notice";
  if (isShuttingDown(pulse)) return "Aftermath";
  if (pulse.draining > 0) return "Departure";
  if (pulse.losses > 0) return "Losses";
  if (between(startedAt, now) < openingMs) return "Opening";
  const isNew = pulse.departed < shownDepartures;
  return isNew && nextAt !== undefined && between(now, nextAt) < soonMs ? "Soon" : "Quiet";
}

function isShuttingDown({ now, shutdownAt }: Pulse): boolean {
  if (shutdownAt === undefined || now < shutdownAt) return false;
  return between(shutdownAt, now) < shutdownMs;
}

/**
 * How many times as fast as `--speed` says: slow where something happens, fast where nothing does,
 * so that at 60 the whole story of the first day is told within a minute.
 */
export function paceOf(
  moment: Moment,
  { departed, noticed, isAskedFor }: Pick<Pulse, "departed" | "noticed" | "isAskedFor">,
): number {
  const isToBeSeen = noticed <= 1 || isAskedFor;
  switch (moment) {
    case "Notice":
      return isToBeSeen ? 1 / 4 : 4;
    case "Aftermath":
      return isToBeSeen ? 1 / 3 : 10;
    case "Soon":
    case "Opening":
      return 1;
    case "Departure":
      return departed < shownDepartures ? 1 : 20;
    case "Losses":
      return 4;
    case "Quiet":
      return 60;
    // As fast as the machine can.
    case "Skipping":
      return 100_000;
  }
}

/** In a word or two, beside the speed. */
export function momentText(moment: Moment): string {
  switch (moment) {
    case "Notice":
      return "notice running";
    case "Aftermath":
      return "shutdown";
    case "Departure":
      return "departure running";
    case "Losses":
      return "interruptions";
    case "Soon":
      return "departure soon";
    case "Skipping":
      return "to the next event";
    case "Opening":
    case "Quiet":
      return "";
  }
}
