import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import type { Departure } from "./departure.ts";

/** How long the record of an ended departure is kept. */
const keepEndedMs: Millis = hours(72);

/**
 * So many records of one node are kept, however young they are: an agent finds a free name among 999 by looking
 * at each, and a platform that gives notice and takes it back all day must not use them up.
 */
const mostRecords = 100;

/** Whether the record of an ended departure goes; `ofNode` are all departures of its node. */
export function isForgettable(
  departure: Departure,
  ofNode: readonly Departure[],
  now: Instant,
): boolean {
  const endedAt = endOf(departure);
  if (endedAt === undefined) return false;
  if (plus(endedAt, keepEndedMs) <= now) return true;
  if (ofNode.length <= mostRecords) return false;
  return ofNode.filter((one) => isNewer(one, departure)).length >= mostRecords;
}

function isNewer(one: Departure, than: Departure): boolean {
  const [a, b] = [endOf(one) ?? 0, endOf(than) ?? 0];
  return a > b || (a === b && one.name > than.name);
}

function endOf({ status }: Departure): Instant | undefined {
  return status.phase === "Ended" ? status.endedAt : undefined;
}
