import { assert } from "../../errors.ts";

/** Instants and spans, both in whole milliseconds; the brands keep them from being mixed up. */
declare const instantBrand: unique symbol;

declare const millisBrand: unique symbol;

/** A point in time: milliseconds since 1970-01-01T00:00:00Z. Names of instants end in `At`. */
export type Instant = number & { readonly [instantBrand]: true };

/** A span of time in milliseconds. Names of spans end in `Ms`. */
export type Millis = number & { readonly [millisBrand]: true };

export function instant(epochMs: number): Instant {
  return epochMs as Instant;
}

export function millis(ms: number): Millis {
  return ms as Millis;
}

export function seconds(count: number): Millis {
  return (count * 1000) as Millis;
}

export function minutes(count: number): Millis {
  return (count * 60_000) as Millis;
}

export function hours(count: number): Millis {
  return (count * 3_600_000) as Millis;
}

export function plus(at: Instant, span: Millis): Instant {
  return (at + span) as Instant;
}

export function minus(at: Instant, span: Millis): Instant {
  return (at - span) as Instant;
}

/** The span from `from` to `to`; negative when `to` is earlier. */
export function between(from: Instant, to: Instant): Millis {
  return (to - from) as Millis;
}

export function earlier(a: Instant, b: Instant): Instant {
  return a < b ? a : b;
}

/** The earlier of two instants, either of which may be unset. */
export function earliest(a: Instant | undefined, b: Instant | undefined): Instant | undefined {
  return a === undefined || b === undefined ? (a ?? b) : earlier(a, b);
}

export function later(a: Instant, b: Instant): Instant {
  return a > b ? a : b;
}

const rfc3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Reads an RFC 3339 instant such as `2026-11-20T00:00:00Z`; undefined for anything else. */
export function parseInstant(text: string): Instant | undefined {
  if (!rfc3339.test(text)) return undefined;
  const epochMs = Date.parse(text);
  if (Number.isNaN(epochMs) || rollsOver(text)) return undefined;
  return instant(epochMs);
}

const httpDate =
  /^(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/**
 * Reads the date of an HTTP header (RFC 9110, `Mon, 11 Apr 2026 22:26:58 GMT`), with the weekday or
 * without it, as in EC2's scheduled events; undefined for anything else. A weekday that does not
 * match the date is accepted, because the clouds' own examples contain such dates.
 */
export function parseHttpDate(text: string): Instant | undefined {
  const match = httpDate.exec(text);
  const month = months.indexOf(match?.[2] ?? "");
  if (match === null || month < 0) return undefined;
  const [day, year, hour, minute, second] = [1, 3, 4, 5, 6].map((at) => Number(match[at])) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const daysInMonth = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  if (day < 1 || day > daysInMonth || hour > 23 || minute > 59 || second > 59) return undefined;
  return instant(Date.UTC(year, month, day, hour, minute, second));
}

/** Writes an instant as RFC 3339 in UTC with milliseconds: `2026-11-20T00:00:00.000Z`. */
export function formatInstant(at: Instant): string {
  return new Date(at).toISOString();
}

/** Without milliseconds if they are zero, as people write instants. */
export function briefInstant(at: Instant): string {
  return formatInstant(at).replace(".000Z", "Z");
}

/** For a library that expects a Date. */
export function dateAt(at: Instant): Date {
  return new Date(at);
}

/** `Date.parse` reads 30 February as 2 March; there is no such day. */
function rollsOver(text: string): boolean {
  const day = Number(text.slice(8, 10));
  // Every month has 28 days.
  if (day <= 28) return false;
  const [year, month] = [Number(text.slice(0, 4)), Number(text.slice(5, 7))];
  return day > new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/**
 * A Date header has whole seconds and is as old as the response was in transit. Clocks that differ
 * by no more than this agree.
 */
const toleranceMs: Millis = seconds(2);

export interface AnswerTimes {
  /** The response's Date header; undefined if it had none that can be parsed. */
  readonly dateAt: Instant | undefined;
  /** When the response arrived, by our own clock. */
  readonly receivedAt: Instant;
}

/**
 * The cloud's time at the arrival of a response. If the clocks agree, our own is used, which is
 * finer; if they do not, the cloud's: a deadline that it names, or that is counted from its time,
 * must not depend on the clock of one node.
 */
export function cloudTime({ dateAt, receivedAt }: AnswerTimes): Instant {
  if (dateAt === undefined || !clocksDisagree({ dateAt, receivedAt })) return receivedAt;
  return dateAt;
}

/** Whether our clock is off by more than the precision of a Date header. */
export function clocksDisagree({ dateAt, receivedAt }: AnswerTimes): boolean {
  return dateAt !== undefined && Math.abs(between(dateAt, receivedAt)) > toleranceMs;
}

/**
 * Milliseconds in each unit of a Go duration; nanoseconds and microseconds are rounded to
 * milliseconds.
 */
const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;

const whole = /^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/;

/** Go, and with it CEL, counts durations in 63 bits of nanoseconds: 292 years. */
const longestMs = 9_223_372_036_854;

/**
 * Reads a Go duration such as `12h30m`, `90s` or `0`; undefined for anything else, including a
 * duration longer than Go supports: an instant so far ahead may not be representable. Negative
 * durations are not accepted: nothing in Lastcall has one.
 */
export function parseDuration(text: string): Millis | undefined {
  if (text === "0") return millis(0);
  if (!whole.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(part)) {
    totalMs += Number(count) * (unitMs[unit as string] as number);
  }
  return totalMs > longestMs ? undefined : millis(Math.round(totalMs));
}

/** Writes a span as Go does, without zero components: `24h`, `12h30m`, `1m5s`, `250ms`, `0s`. */
export function formatDuration(span: Millis): string {
  if (span === 0) return "0s";
  const sign = span < 0 ? "-" : "";
  let restMs = Math.abs(Math.round(span));
  let text = "";
  for (const unit of ["h", "m", "s", "ms"] as const) {
    const size = unitMs[unit] as number;
    const count = Math.floor(restMs / size);
    if (count > 0) text += `${count}${unit}`;
    restMs -= count * size;
  }
  return sign + text;
}

/** For people: to the second, unless it is shorter than one. */
export function formatRounded(span: Millis): string {
  const whole = Math.round(span / 1000) * 1000;
  return formatDuration(whole === 0 ? span : (whole as Millis));
}

declare const wallBrand: unique symbol;

/**
 * What a clock on the wall shows: milliseconds since 1970-01-01T00:00 local time, as if every day
 * had 24 hours. `instantOfWall` converts the wall time of a zone to an instant.
 */
export type WallTime = number & { readonly [wallBrand]: true };

export const minuteMs = 60_000;

export const dayMs = 86_400_000;

export function wallTime(ms: number): WallTime {
  return ms as WallTime;
}

/** Whether the time zone database has a zone of this name, such as `Asia/Tokyo`. */
export function isTimeZone(name: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name);
    return true;
  } catch {
    return false;
  }
}

/** The wall time of a zone at an instant. */
export function wallOfInstant(at: Instant, timeZone: string): WallTime {
  if (timeZone === "UTC") return wallTime(at);
  const shown = Temporal.Instant.fromEpochMilliseconds(at)
    .toZonedDateTimeISO(timeZone)
    .toPlainDateTime();
  return wallTime(shown.toZonedDateTime("UTC").epochMilliseconds);
}

/**
 * The instant at which a wall clock shows `wall`. A time that is skipped because the clock is put
 * forward moves to the next instant that exists: the moment of the change. (Temporal's own
 * `compatible` would add the missing hour and turn 02:30 into 03:30.) Of a time that occurs twice,
 * the first is meant. The result never decreases as `wall` increases.
 */
export function instantOfWall(wall: WallTime, timeZone: string): Instant {
  if (timeZone === "UTC") return instant(wall);
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

/** Days since 1970-01-01, a Thursday, to a weekday: 0 is Monday. */
export function weekdayOfWall(wall: WallTime): number {
  return (((Math.floor(wall / dayMs) + 3) % 7) + 7) % 7;
}

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
