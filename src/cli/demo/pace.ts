import type { Moment } from "../../board/demo-picture.ts";
import { between, type Instant } from "../../core/time/time.ts";

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
