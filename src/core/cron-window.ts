import { Cron } from "croner";
import { messageOf } from "../errors.ts";
import { dateAt, instant } from "./time.ts";
import { type WallTime, wallTime } from "./wall-time.ts";

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

function parse(expression: string): Cron {
  const fields = expression.trim().split(/\s+/).length;
  if (fields !== 5) throw new RangeError(`${fields} fields, where five are wanted`);
  return new Cron(expression.trim(), { utcOffset: 0, mode: "5-part", paused: true });
}

/** A text would have it build a table of the zone UTC, which takes longer than all the rest. */
function date(wall: WallTime): Date {
  return dateAt(instant(wall));
}
