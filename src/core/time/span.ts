import { type Instant, instant, type Millis, plus } from "./time.ts";

/** A half-open interval: it includes `startAt`, but not `endAt`. */
export interface Span {
  readonly startAt: Instant;
  readonly endAt: Instant;
}

/** The same instants as sorted spans that neither touch nor overlap; empty spans are dropped. */
export function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const sorted = spans.filter((span) => span.startAt < span.endAt);
  sorted.sort((a, b) => a.startAt - b.startAt);
  const merged: Span[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last === undefined || span.startAt > last.endAt) merged.push(span);
    else if (span.endAt > last.endAt) merged[merged.length - 1] = { ...last, endAt: span.endAt };
  }
  return merged;
}

/** `spans` without `holes`; both must be merged, and so is the result. */
export function subtractSpans(spans: readonly Span[], holes: readonly Span[]): readonly Span[] {
  const rest: Span[] = [];
  let first = 0;
  for (const span of spans) {
    while ((holes[first]?.endAt ?? Number.POSITIVE_INFINITY) <= span.startAt) first += 1;
    let startAt = span.startAt;
    for (let at = first; startAt < span.endAt; at += 1) {
      const hole = holes[at];
      if (hole === undefined || hole.startAt >= span.endAt) break;
      if (hole.startAt > startAt) rest.push({ startAt, endAt: hole.startAt });
      if (hole.endAt > startAt) startAt = hole.endAt;
    }
    if (startAt < span.endAt) rest.push({ startAt, endAt: span.endAt });
  }
  return rest;
}

/** The part of `spans` inside `bounds`. */
export function clipSpans(spans: readonly Span[], bounds: Span): readonly Span[] {
  const inside: Span[] = [];
  for (const span of spans) {
    const startAt = instant(Math.max(span.startAt, bounds.startAt));
    const endAt = instant(Math.min(span.endAt, bounds.endAt));
    if (startAt < endAt) inside.push({ startAt, endAt });
  }
  return inside;
}

/** The same spans, each ending later by `byMs`; not merged. */
export function lengthenSpans(spans: readonly Span[], byMs: Millis): readonly Span[] {
  return spans.map((span) => ({ startAt: span.startAt, endAt: plus(span.endAt, byMs) }));
}

/** The index of the last span that starts at or before `at`; -1 if all start later. */
export function spanIndexAt(spans: readonly Span[], at: Instant): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((spans[middle] as Span).startAt <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Whether `at` is in one of the merged `spans`. */
export function coversInstant(spans: readonly Span[], at: Instant): boolean {
  const span = spans[spanIndexAt(spans, at)];
  return span !== undefined && at < span.endAt;
}
