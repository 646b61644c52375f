import type { Departure } from "./departure.ts";
import { hours, type Instant, minutes, plus } from "./time.ts";

const firstMs = minutes(10);
const longestMs = hours(6);

/**
 * When a node whose departures failed, were rolled back or taken back by a person may be tried again: ten minutes after
 * the last of them ended (twice in the default reserve before a deadline), twice as long after each further one, six hours at most. Undefined where
 * nothing failed. The deadline still forces: this moves the planned instant only.
 */
export function retryAt(former: readonly Departure[]): Instant | undefined {
  const undone = former.filter(
    ({ status }) =>
      status.outcome === "RolledBack" ||
      status.outcome === "Failed" ||
      // One that was cancelled before it began disturbed nobody.
      (status.outcome === "Cancelled" && status.startedAt !== undefined),
  );
  const ends = undone.flatMap(({ status }) => status.endedAt ?? []);
  if (ends.length === 0) return undefined;
  const waitMs = Math.min(longestMs, firstMs * 2 ** (ends.length - 1)) as typeof firstMs;
  return plus(Math.max(...ends) as Instant, waitMs);
}
