import { between, type Instant, instant, type Millis } from "../time/time.ts";
import type { PlannedDeparture } from "./fleet-plan.ts";

/** How far apart departures start that can no longer choose their instants. */
export interface QueueSpacing {
  /** The newest start of the policy. */
  readonly lastStart: Instant | undefined;
  /** The gap that the plan keeps: at most `spacing.min`. */
  readonly gap: number;
  readonly minMs: Millis;
}

/** The gap that is kept whatever forces the starts. */
export function leastGapMs(minMs: Millis): number {
  return minMs / leastShare;
}

/**
 * When a departure that is not in the queue may start at the earliest: the newest start may have
 * come at another instant than the plan had for it, and instants do not move while another one of
 * the policy is due.
 */
export function clearOfLastStart({ lastStart, gap, minMs }: QueueSpacing): Instant | undefined {
  if (lastStart === undefined) return undefined;
  return instant(Math.ceil(lastStart + Math.min(gap, leastGapMs(minMs))));
}

type Queued = Pick<PlannedDeparture, "reason" | "deadlineAt" | "endsAt">;

/**
 * The gap in a queue is not narrowed further than to this share of `spacing.min`. A node that
 * would have to start closer to its neighbour to be in time is late instead, since a fleet that
 * leaves together is worse than a node that leaves late.
 */
const leastShare = 15;

/**
 * When the first of a queue may start: a gap after the newest start, as far as the lifetimes of all
 * of them allow. Undefined if none has started before. Instants are whole milliseconds.
 */
export function queueOpensAt(queue: readonly Queued[], spacing: QueueSpacing): Instant | undefined {
  const { lastStart } = spacing;
  if (lastStart === undefined) return undefined;
  return instant(lastStart + queueGap(queue, { ...spacing, from: lastStart }));
}

/** When those of a queue that is not open yet are expected to start, in their order. */
export function turnsOf<One>(
  queue: readonly One[],
  queueOpening: Pick<QueueSpacing, "lastStart"> & {
    readonly opensAt: Instant | undefined;
    readonly at: Instant;
  },
): ReadonlyMap<One, Instant> {
  const { lastStart, opensAt, at } = queueOpening;
  if (opensAt === undefined || lastStart === undefined || opensAt <= at) return new Map();
  const gapMs = between(lastStart, opensAt);
  return new Map(queue.map((one, place) => [one, instant(opensAt + place * gapMs)]));
}

/**
 * From when each departure of a queue starts although the budget is used up: at the end of its
 * lifetime, or earlier, so that all of them start a gap apart. They use the reserve for that;
 * without a reserve, the first starts as much before the deadline as the least gap needs. A node
 * that was overdue when first planned is not in the result.
 */
export function budgetOverrides<One extends Queued>(
  queue: readonly One[],
  { lastStart, ...spacing }: QueueSpacing,
): ReadonlyMap<One, Instant> {
  const inTurn = queue.filter(hasEnd).toSorted((a, b) => a.endsAt - b.endsAt);
  let from: number = lastStart ?? Number.NEGATIVE_INFINITY;
  const reserveAt = inTurn.reduce(
    (first, one) => Math.min(first, one.deadlineAt),
    Number.POSITIVE_INFINITY,
  );
  from = Math.max(from, reserveAt);
  const gap = queueGap(inTurn, { ...spacing, from });
  const marginMs = marginOf(inTurn, spacing.minMs);
  const overrides = new Map<One, Instant>();
  let nextAt = Number.POSITIVE_INFINITY;
  for (const one of inTurn.toReversed()) {
    nextAt = Math.floor(Math.min(one.endsAt - marginMs, nextAt - gap));
    overrides.set(one, instant(nextAt));
  }
  return overrides;
}

/** A lifetime that is over already does not narrow the gap: its node is late in any case. */
function queueGap(
  queue: readonly Queued[],
  { from, gap, minMs }: Omit<QueueSpacing, "lastStart"> & { readonly from: number },
): number {
  const ahead = queue.filter((one) => hasEnd(one) && one.endsAt > from);
  const ends = Float64Array.from(ahead, ({ endsAt }) => endsAt).sort();
  const marginMs = marginOf(ahead, minMs);
  let fits = gap;
  for (const [place, end] of ends.entries()) {
    fits = Math.min(fits, (end - marginMs - from) / (place + 1));
  }
  return Math.floor(Math.max(fits, leastGapMs(minMs)));
}

function hasEnd({ reason }: Queued): boolean {
  return reason !== "Overdue";
}

/**
 * Of several, the last starts a least gap before its lifetime ends, so that starts which come a
 * moment late make none late.
 */
function marginOf(queue: readonly Queued[], minMs: Millis): number {
  return queue.length > 1 ? leastGapMs(minMs) : 0;
}
