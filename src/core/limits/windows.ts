import { Cron } from "croner";
import { messageOf } from "../../errors.ts";
import type { CronWindow, Weekday, WeeklyWindow, Window } from "../policy/policy.ts";
import {
  clipSpans,
  coversInstant,
  dateAt,
  dayMs,
  hours,
  type Instant,
  instant,
  instantOfWall,
  isTimeZone,
  mergeSpans,
  millis,
  minus,
  minuteMs,
  plus,
  type Span,
  subtractSpans,
  type WallTime,
  wallOfInstant,
  wallTime,
  weekdayOfWall,
} from "../time/time.ts";

/**
 * The only module that uses the cron library. It computes wall times, in UTC; `instantOfWall`
 * converts them to instants, also on days of 23 and 25 hours, for weekly and cron windows alike.
 */
export interface CronTimes {
  /** The first time after `wall`; undefined if there is none (31 February). */
  next(wall: WallTime): WallTime | undefined;
  /** The last two times before `wall`, the earlier one first. */
  lastTwo(wall: WallTime): readonly WallTime[];
}

/** The problem with a five-field cron expression; undefined if it is valid. */
export function cronProblem(expression: string): string | undefined {
  try {
    parse(expression);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Throws if `cronProblem` returns a problem. */
function cronTimes(expression: string): CronTimes {
  const cron = parse(expression);
  return {
    next(wall) {
      const found = cron.nextRun(date(wall));
      return found === null ? undefined : wallTime(found.getTime());
    },
    lastTwo(wall) {
      const found = cron.previousRuns(2, date(wall));
      return found.map((run) => wallTime(run.getTime())).reverse();
    },
  };
}

/** A parsed expression: the days on which it fires, and the times of such a day. */
export interface CronDays {
  /** Sorted minutes after midnight, the same on every day. */
  readonly minutes: readonly number[];
  /** Midnight of the first such day that starts after `wall`. */
  nextDay(wall: WallTime): WallTime | undefined;
}

/**
 * Queries the library once per day, hour and minute: querying every time would be half a million
 * calls for a year of minutes. Throws if `cronProblem` returns a problem.
 */
function cronDays(expression: string): CronDays {
  const [minute = "", hour = "", ...days] = expression.trim().split(/\s+/);
  const hours = timesIn(`0 ${hour} * * *`, dayMs);
  const minutes = timesIn(`${minute} * * * *`, 60 * minuteMs);
  const { next } = cronTimes(`0 0 ${days.join(" ")}`);
  return {
    minutes: hours.flatMap((from) => minutes.map((past) => (from + past) / minuteMs)),
    nextDay: next,
  };
}

/** The times within the first `endMs` of wall time, in milliseconds. */
function timesIn(expression: string, endMs: number): readonly number[] {
  const { next } = cronTimes(expression);
  const found: number[] = [];
  for (let wall = next(wallTime(-1000)); wall !== undefined && wall < endMs; wall = next(wall)) {
    found.push(wall);
  }
  return found;
}

function parse(expression: string): Cron {
  const fields = expression.trim().split(/\s+/).length;
  if (fields !== 5) throw new RangeError(`${fields} fields, expected five`);
  return new Cron(expression.trim(), { utcOffset: 0, mode: "5-part", paused: true });
}

/** A Date, because parsing a text builds a table of the zone, which is slower than the rest. */
function date(wall: WallTime): Date {
  return dateAt(instant(wall));
}

/** A policy's windows between two instants, computed once for the whole fleet. */
export interface OpenHours {
  readonly bounds: Span;
  /** When planned departures may start: merged, inside `bounds`. */
  readonly spans: readonly Span[];
  /** Each Allow window in the policy's order, before subtracting the Deny windows. */
  readonly allow: readonly { readonly name: string; readonly spans: readonly Span[] }[];
  /** All Deny windows together. */
  readonly deny: readonly Span[];
}

const weekdays: readonly Weekday[] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** The problem with a window; undefined if it is valid. */
export function windowProblem(window: Window): string | undefined {
  if (!isTimeZone(window.timeZone)) {
    return `the window ${window.name} has the time zone ${window.timeZone}, expected an IANA name`;
  }
  const problem = window.kind === "Cron" ? cronProblem(window.cron) : undefined;
  return problem === undefined ? undefined : `the cron of the window ${window.name}: ${problem}`;
}

/**
 * The instants in [from, until) at which a planned departure may start: those of any Allow window
 * that no Deny window covers. Without an Allow window, everything that is not denied is allowed.
 * Windows are half-open, and a window over midnight belongs to the day on which it starts. On a day
 * of a clock change, a `start` or `end` that is skipped means the moment of the change, and one
 * that occurs twice means the first. So a window with both skipped does not open that day.
 */
export function allowedSpans(
  windows: readonly Window[],
  from: Instant,
  until: Instant,
): readonly Span[] {
  return openHours(windows, { startAt: from, endAt: until }).spans;
}

/** Like `allowedSpans`, with the names and spans of the single windows. */
export function openHours(windows: readonly Window[], bounds: Span): OpenHours {
  const covered = (window: Window): readonly Span[] =>
    mergeSpans(clipSpans(occurrences(window, bounds), bounds));
  const allow = windows
    .filter((window) => window.type === "Allow")
    .map((window) => ({ name: window.name, spans: covered(window) }));
  const deny = mergeSpans(windows.filter((window) => window.type === "Deny").flatMap(covered));
  const base =
    allow.length === 0 ? mergeSpans([bounds]) : mergeSpans(allow.flatMap((window) => window.spans));
  return { bounds, spans: subtractSpans(base, deny), allow, deny };
}

/** The first Allow window that contains `at`; null if there is none. */
export function windowNameAt(hours: OpenHours, at: Instant): string | null {
  if (coversInstant(hours.deny, at)) return null;
  for (const window of hours.allow) if (coversInstant(window.spans, at)) return window.name;
  return null;
}

/**
 * Every opening of one window that ends after `bounds.startAt` and starts before `bounds.endAt`,
 * whole (not clipped), and the last opening before it; in order of their starts. Openings that
 * touch may be one.
 */
export function occurrences(window: Window, bounds: Span): readonly Span[] {
  return window.kind === "Weekly" ? weekly(window, bounds) : byCron(window, bounds);
}

function weekly(window: WeeklyWindow, bounds: Span): readonly Span[] {
  const days = new Set(window.days.map((day) => weekdays.indexOf(day)));
  // Eight days back, so that the last opening of a weekly window is included.
  const firstWall = wallOfInstant(minus(bounds.startAt, millis(8 * dayMs)), window.timeZone);
  const lastWall = wallOfInstant(plus(bounds.endAt, millis(dayMs)), window.timeZone);
  const nextDay = window.endMinute <= window.startMinute ? dayMs : 0;
  const found: Span[] = [];
  for (let day = Math.floor(firstWall / dayMs) * dayMs; day <= lastWall; day += dayMs) {
    if (!days.has(weekdayOfWall(wallTime(day)))) continue;
    const start = wallTime(day + window.startMinute * minuteMs);
    const end = wallTime(day + nextDay + window.endMinute * minuteMs);
    const startAt = instantOfWall(start, window.timeZone);
    if (startAt >= bounds.endAt) break;
    found.push({ startAt, endAt: instantOfWall(end, window.timeZone) });
  }
  return found;
}

/** Up to this duration, each opening is computed individually. */
const shortMs = hours(1);

function byCron(window: CronWindow, bounds: Span): readonly Span[] {
  const times = cronTimes(window.cron);
  const from = wallOfInstant(bounds.startAt, window.timeZone);
  // All openings have the same length, so of those before the bounds only the last one can reach
  // furthest into them; two, because the last one may start within the same second.
  const lastTwo = times.lastTwo(wallTime(from + 1000));
  if (bounds.endAt - bounds.startAt > shortMs) {
    const midnight = wallTime(Math.floor(from / dayMs) * dayMs);
    const before = lastTwo.filter((wall) => wall < midnight);
    return [...openingsAt(before, window), ...byDay(window, { midnight, endAt: bounds.endAt })];
  }
  let wall = lastTwo[0] ?? times.next(from);
  const found: Span[] = [];
  while (wall !== undefined) {
    const startAt = instantOfWall(wall, window.timeZone);
    if (startAt >= bounds.endAt) break;
    found.push({ startAt, endAt: plus(startAt, window.durationMs) });
    wall = times.next(wall);
  }
  return found;
}

interface Days {
  readonly midnight: WallTime;
  readonly endAt: Instant;
}

/** The openings day by day; touching openings of one day are merged. */
function byDay(window: CronWindow, bounds: Days): readonly Span[] {
  const { timeZone, durationMs } = window;
  const days = cronDays(window.cron);
  const offsets = openingsAt(
    days.minutes.map((minute) => wallTime(minute * minuteMs)),
    { durationMs, timeZone: "UTC" },
  );
  const found: Span[] = [];
  let day = days.nextDay(wallTime(bounds.midnight - 1000));
  for (; day !== undefined; day = days.nextDay(day)) {
    const midnight = day;
    const dayAt = instantOfWall(midnight, timeZone);
    if (dayAt >= bounds.endAt) break;
    const isEven = instantOfWall(wallTime(midnight + dayMs), timeZone) - dayAt === dayMs;
    // On a day of a clock change, each time is converted individually.
    const spans = isEven
      ? offsets.map((span) => shifted(span, dayAt))
      : openingsAt(
          days.minutes.map((minute) => wallTime(midnight + minute * minuteMs)),
          window,
        );
    for (const span of spans) if (span.startAt < bounds.endAt) found.push(span);
  }
  return found;
}

function openingsAt(
  walls: readonly WallTime[],
  { timeZone, durationMs }: Pick<CronWindow, "timeZone" | "durationMs">,
): readonly Span[] {
  return mergeSpans(
    walls.map((wall) => {
      const startAt = instantOfWall(wall, timeZone);
      return { startAt, endAt: plus(startAt, durationMs) };
    }),
  );
}

function shifted({ startAt, endAt }: Span, by: Instant): Span {
  return { startAt: instant(startAt + by), endAt: instant(endAt + by) };
}
