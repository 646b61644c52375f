import type { Window } from "../policy/policy.ts";
import { hours, type Instant, instant, plus } from "../time/time.ts";
import { occurrences, openHours, windowNameAt } from "./windows.ts";

/** Whether planned departures may start at an instant, and what changes next. */
export interface WindowState {
  readonly state: "Open" | "Shut";
  /** When it changes; undefined where it does not within the days that are looked at. */
  readonly until?: Instant | undefined;
  /** The Allow window that is open, or the Deny window that shuts, now or next; undefined: none. */
  readonly window?: string | undefined;
}

/** A week and a day: every weekly window opens and shuts within it. */
const lookAheadMs = hours(8 * 24);

export function windowState(windows: readonly Window[], at: Instant): WindowState {
  const open = openHours(windows, { startAt: at, endAt: plus(at, lookAheadMs) });
  const [first] = open.spans;
  if (first === undefined) return { state: "Shut", window: denyAt(windows, at) };
  if (first.startAt > at) {
    return { state: "Shut", until: first.startAt, window: denyAt(windows, at) };
  }
  const until = first.endAt < open.bounds.endAt ? first.endAt : undefined;
  const next = until === undefined ? undefined : denyAt(windows, until);
  return { state: "Open", until, window: windowNameAt(open, at) ?? next };
}

function denyAt(windows: readonly Window[], at: Instant): string | undefined {
  const moment = { startAt: at, endAt: instant(at + 1) };
  const shuts = (window: Window): boolean =>
    occurrences(window, moment).some((span) => span.startAt <= at && at < span.endAt);
  return windows.find((window) => window.type === "Deny" && shuts(window))?.name;
}
