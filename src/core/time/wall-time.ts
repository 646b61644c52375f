import { assert } from "../../errors.ts";
import { type Instant, instant } from "./time.ts";

declare const wallBrand: unique symbol;

/**
 * What a clock on the wall shows: milliseconds since 1970-01-01T00:00 local, as if every day had
 * 24 hours. One zone's wall time becomes an instant through `instantOfWall`.
 */
export type WallTime = number & { readonly [wallBrand]: true };

export const minuteMs = 60_000;
export const dayMs = 86_400_000;

export function wallTime(ms: number): WallTime {
  return ms as WallTime;
}

/** Whether the name is one that the zone database knows, such as `Asia/Tokyo`. */
export function isTimeZone(name: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name);
    return true;
  } catch {
    return false;
  }
}

/** What the wall clock of a zone shows at an instant. */
export function wallOfInstant(at: Instant, timeZone: string): WallTime {
  const shown = Temporal.Instant.fromEpochMilliseconds(at)
    .toZonedDateTimeISO(timeZone)
    .toPlainDateTime();
  return wallTime(shown.toZonedDateTime("UTC").epochMilliseconds);
}

/**
 * When a wall clock shows `wall`. A time that does not exist, because the clock was put forward
 * past it, moves to the next instant that does: the moment of the change. (Temporal's own
 * `compatible` would add the missing hour and turn 02:30 into 03:30.) One that exists twice means
 * the first. The answer never goes back as `wall` goes on.
 */
export function instantOfWall(wall: WallTime, timeZone: string): Instant {
  const asked = Temporal.Instant.fromEpochMilliseconds(wall)
    .toZonedDateTimeISO("UTC")
    .toPlainDateTime();
  const found = asked.toZonedDateTime(timeZone);
  if (found.toPlainDateTime().equals(asked)) return instant(found.epochMilliseconds);
  const before = asked.toZonedDateTime(timeZone, { disambiguation: "earlier" });
  const change = before.getTimeZoneTransition("next");
  assert(change !== null, `a wall time that is skipped in ${timeZone} has a change of the clock`);
  return instant(change.epochMilliseconds);
}

/** Days since 1970-01-01 to a weekday: 0 is Monday. That day was a Thursday. */
export function weekdayOfWall(wall: WallTime): number {
  return (((Math.floor(wall / dayMs) + 3) % 7) + 7) % 7;
}
