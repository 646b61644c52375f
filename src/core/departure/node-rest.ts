import { compareIdentity, type NodeIdentity } from "../cluster/node.ts";
import type { Reason } from "../reason/reason.ts";
import { hours, type Instant, millis, minutes, plus } from "../time/time.ts";
import { type Departure, hasTakenMachine, isVoluntary } from "./departure.ts";

const firstRetryMs = minutes(10);

const longestRetryMs = hours(6);

/** However little time is left, a node is not tried again at once, or it would be for ever. */
const leastRetryMs = minutes(1);

/** The rest of a node after departures that were rolled back. */
export interface NodeRest {
  readonly until: Instant;
  /** When it may end at the earliest, if a window or the deadline leaves no more time. */
  readonly leastUntil: Instant;
}

/**
 * When a node whose departures failed, were rolled back or were cancelled by a user may be tried
 * again: ten minutes after the last of them ended (twice within the default reserve before a
 * deadline), doubling with each further one, at most six hours. Undefined if none failed. The
 * deadline still forces the departure: this only moves the planned instant.
 */
export function nodeRest(former: readonly Departure[]): NodeRest | undefined {
  const undone = former.filter(
    ({ status }) =>
      status.outcome === "RolledBack" ||
      status.outcome === "Failed" ||
      // A departure that was cancelled before it started disturbed nothing.
      (status.outcome === "Cancelled" && status.startedAt !== undefined),
  );
  const ends = undone.flatMap(({ status }) => status.endedAt ?? []);
  if (ends.length === 0) return undefined;
  const waitMs = Math.min(
    longestRetryMs,
    firstRetryMs * 2 ** (ends.length - 1),
  ) as typeof firstRetryMs;
  const endedAt = Math.max(...ends) as Instant;
  return { until: plus(endedAt, waitMs), leastUntil: plus(endedAt, leastRetryMs) };
}

const firstRestMs = hours(1);

const longestRestMs = hours(24);

/** The reasons of departures that drained the node completely but did not end its machine. */
const inVain: ReadonlySet<Reason> = new Set(["ReleaseFailed", "MachineNotTaken"]);

/**
 * When a node that was drained but not released may be planned again: an hour after the last time,
 * doubling with each further one, at most a day. A deadline does not shorten this, because the
 * machine would stay again. Undefined if its machine never stayed, or has been replaced since.
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

/** How long a watch that lags may show a Node that has gone. */
const shownLateMs = minutes(10);

/** Whether a departure has taken the machine a moment ago: the Node is no other one's yet. */
export function hasJustLeft(
  node: NodeIdentity,
  former: readonly Departure[],
  at: Instant,
): boolean {
  return former.some((one) => {
    const { endedAt } = one.status;
    const isRecent = endedAt !== undefined && at < plus(endedAt, shownLateMs);
    return isRecent && hasTakenMachine(one) && compareIdentity(one.node, node) === "Same";
  });
}
