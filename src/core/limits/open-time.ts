import type { Span } from "../time/span.ts";

/**
 * The instants at which a start is allowed, for the optimiser: sorted closed ranges of whole
 * milliseconds, `lows[i]` to `highs[i]`, with at least one forbidden millisecond between two. Plain
 * numbers in two arrays, because a search reads them a million times.
 */
export interface OpenTime {
  readonly lows: readonly number[];
  readonly highs: readonly number[];
}

/** Closed ranges of whole milliseconds, sorted by `lows`; they may overlap. */
export interface ClosedRanges {
  readonly lows: ArrayLike<number>;
  readonly highs: ArrayLike<number>;
}

export function openTime(spans: readonly Span[]): OpenTime {
  return {
    lows: spans.map((span) => span.startAt),
    highs: spans.map((span) => span.endAt - 1),
  };
}

/** The same ranges with time reversed: an instant t becomes -t. */
export function mirrored(open: OpenTime): OpenTime {
  return {
    lows: open.highs.map((high) => -high).reverse(),
    highs: open.lows.map((low) => -low).reverse(),
  };
}

export function withoutRanges(open: OpenTime, holes: ClosedRanges): OpenTime {
  if (holes.lows.length === 0) return open;
  const lows: number[] = [];
  const highs: number[] = [];
  let next = 0;
  for (let at = 0; at < open.lows.length; at += 1) {
    const high = open.highs[at] as number;
    let low = open.lows[at] as number;
    // A hole that extends beyond this range is considered again for the next one.
    while (next < holes.lows.length && (holes.lows[next] as number) <= high) {
      const holeLow = holes.lows[next] as number;
      const holeHigh = holes.highs[next] as number;
      if (holeLow > low) {
        lows.push(low);
        highs.push(holeLow - 1);
      }
      if (holeHigh + 1 > low) low = holeHigh + 1;
      if (holeHigh > high) break;
      next += 1;
    }
    if (low <= high) {
      lows.push(low);
      highs.push(high);
    }
  }
  return { lows, highs };
}

/** `open` without the instants closer than `gap` to one of the sorted `fixed` ones. */
export function keptAway(open: OpenTime, fixed: readonly number[], gap: number): OpenTime {
  if (gap <= 0 || fixed.length === 0) return open;
  const lows = fixed.map((at) => at - gap + 1);
  return withoutRanges(open, { lows, highs: fixed.map((at) => at + gap - 1) });
}

/** The index of the last range that starts at or before `at`; -1 if all start later. */
export function rangeIndexAt(open: OpenTime, at: number): number {
  const { lows } = open;
  let low = 0;
  let high = lows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((lows[middle] as number) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The first allowed instant at or after `at`; Infinity if there is none. */
export function nextOpen(open: OpenTime, at: number): number {
  const index = rangeIndexAt(open, at);
  if (index >= 0 && (open.highs[index] as number) >= at) return at;
  return open.lows[index + 1] ?? Number.POSITIVE_INFINITY;
}

/** The last allowed instant at or before `at`; -Infinity if there is none. */
export function previousOpen(open: OpenTime, at: number): number {
  const index = rangeIndexAt(open, at);
  if (index < 0) return Number.NEGATIVE_INFINITY;
  return Math.min(at, open.highs[index] as number);
}
