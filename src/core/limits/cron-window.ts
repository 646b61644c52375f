import { Cron } from "croner";
import { messageOf } from "../../errors.ts";
import { dateAt, instant } from "../time/time.ts";
import { dayMs, minuteMs, type WallTime, wallTime } from "../time/wall-time.ts";

/**
 * The one place that knows the cron library. It is asked on a clock without zones (offset 0), so
 * that it yields wall times: which instant a wall time is, on days of 23 and 25 hours too, is
 * `instantOfWall`'s to say, for weekly and cron windows alike.
 */
export interface CronTimes {
  /** The first time after `wall`; undefined where there never is one (31 February). */
  next(wall: WallTime): WallTime | undefined;
  /** The last two times before `wall`, the older one first. */
  lastTwo(wall: WallTime): readonly WallTime[];
}

/** What is wrong with a five-field cron expression; undefined where nothing is. */
export function cronProblem(expression: string): string | undefined {
  try {
    parse(expression);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Throws where `cronProblem` names a problem. */
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

/** An expression taken apart: on which days it comes true, and at which times of such a day. */
export interface CronDays {
  /** Minutes after midnight, in order: the same on every day. */
  readonly minutes: readonly number[];
  /** Midnight of the first such day that begins after `wall`. */
  nextDay(wall: WallTime): WallTime | undefined;
}

/**
 * One question of the library for each day, hour and minute, where asking for each time would be
 * half a million of them for a year of minutes. Throws where `cronProblem` names a problem.
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

/** The times within a first stretch of wall time, in milliseconds from its beginning. */
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

/** A text would have it build a table of the zone UTC, which takes longer than all the rest. */
function date(wall: WallTime): Date {
  return dateAt(instant(wall));
}
