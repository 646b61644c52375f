import { compareIdentity, type NodeIdentity } from "../cluster/identity.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, millis, minutes, plus } from "../time/time.ts";
import { type Departure, isVoluntary } from "./departure.ts";

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

const firstRestMs = hours(1);
const longestRestMs = hours(24);

/** A node that was drained to the end, and whose machine was there all the same. */
const inVain: ReadonlySet<Reason> = new Set(["ReleaseFailed", "MachineNotTaken"]);

/**
 * Until when a node is not planned that was drained in vain: an hour after the last time, twice as long
 * after each further one, a day at most. No deadline shortens that: the machine would be there after it, too.
 * Undefined where its machine never stayed, or is another one since.
 */
export function restsUntil(node: NodeIdentity, former: readonly Departure[]): Instant | undefined {
  const stayed = former.filter(
    (one) =>
      isVoluntary(one.cause) &&
      (one.status.outcome === "RolledBack" || one.status.outcome === "Failed") &&
      one.status.reason !== undefined &&
      inVain.has(one.status.reason) &&
      compareIdentity(one.node, node) === "Same",
  );
  const ends = stayed.flatMap(({ status }) => status.endedAt ?? []);
  if (ends.length === 0) return undefined;
  const restMs = Math.min(longestRestMs, firstRestMs * 2 ** (ends.length - 1));
  return plus(Math.max(...ends) as Instant, millis(restMs));
}
