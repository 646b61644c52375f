import type { DemoKey, Moment } from "../../board/demo-picture.ts";
import { between, type Instant } from "../../core/time/time.ts";

/** How the demo's time passes. */
export interface Controls {
  readonly paused: boolean;
  /** Whether it is paused only while somebody reads the page of a node. */
  readonly isReading: boolean;
  /** Multiplies `--speed`. */
  readonly times: number;
  /** The clock runs until the number of events exceeds this one. */
  readonly skipPast?: number | undefined;
}

export const firstControls: Controls = Object.freeze({ paused: false, isReading: false, times: 1 });

/** The demo's keys, as the terminal lists them. */
export const demoKeyHelp: readonly (readonly [key: string, does: string])[] = [
  ["space", "pause"],
  ["+ -", "speed"],
  ["n", "next event"],
  ["i", "interrupt a node"],
];

/** The limit of doubling; a speed beyond what the machine can do runs as fast as it can. */
const [slowest, fastest] = [1 / 64, 64];

/** The controls after a key; `events` is the number of events so far. */
export function pressed(controls: Controls, key: DemoKey, events: number): Controls {
  switch (key) {
    case "Pause":
      return { ...running(controls), paused: !controls.paused };
    case "Faster":
      return { ...controls, times: Math.min(fastest, controls.times * 2) };
    case "Slower":
      return { ...controls, times: Math.max(slowest, controls.times / 2) };
    case "NextEvent":
      return { ...running(controls), skipPast: events };
    // A user who interrupts a node wants to watch it.
    case "Interrupt":
      return running(controls);
    // At 60 times the speed, a node would leave while one reads about it.
    case "Read":
      return controls.paused ? controls : { ...running(controls), paused: true, isReading: true };
    case "ReadOn":
      return controls.isReading ? running(controls) : controls;
  }
}

function running(controls: Controls): Controls {
  return { ...controls, paused: false, isReading: false, skipPast: undefined };
}

/** The state of the two fleets that decides the speed of the clock. */
export interface Pulse {
  readonly now: Instant;
  readonly startedAt: Instant;
  /** Pods still on a machine of Lastcall's fleet after its notice. */
  readonly podsUnderNotice: number;
  /** When the machine with the latest notice shuts down. */
  readonly shutdownAt?: Instant | undefined;
  /** The number of notices so far, including this one. */
  readonly noticed: number;
  /** Whether the user requested the latest notice. */
  readonly isAskedFor: boolean;
  /** Planned departures under way, and those that have ended. */
  readonly draining: number;
  readonly departed: number;
  /** Machines that the cloud is taking now, in either fleet. */
  readonly losses: number;
  /** When the next planned departure is due. */
  readonly nextAt?: Instant | undefined;
}

/** Time to read the screen before anything happens. */
const openingMs = 240_000;
/** From the shutdown until the machine is off, with time to read the outcome. */
const shutdownMs = 115_000;
/** How long before a departure the clock slows down, so that it can be watched. */
const soonMs = 30_000;
/** After this many departures and one notice, users know what they look like. */
const shownDepartures = 2;

/** What there is to watch now; the rarest first. */
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
 * The factor on `--speed`: slow while something happens, fast while nothing does, so that at 60 the
 * whole first day takes less than a minute.
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
    // As fast as the machine allows.
    case "Skipping":
      return 100_000;
  }
}

/** In a word or two, next to the speed. */
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
