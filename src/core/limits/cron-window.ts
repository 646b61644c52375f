import { Cron } from "croner";
import { messageOf } from "../../errors.ts";
import { dateAt, instant } from "../time/time.ts";
import { dayMs, minuteMs, type WallTime, wallTime } from "../time/wall-time.ts";

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
export function cronTimes(expression: string): CronTimes {
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
export function cronDays(expression: string): CronDays {
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
