/** Instants and spans. Both are whole milliseconds; the brands keep them from being mixed up. */
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

/** The earlier of two that may not be set. */
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
 * Reads the date of an HTTP header (RFC 9110, `Mon, 11 Apr 2026 22:26:58 GMT`), with the weekday or,
 * as EC2 writes its scheduled events, without; undefined for anything else. A weekday that does not
 * fit the day is let pass: the clouds' own examples have such.
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

/** For a library that wants a Date. */
export function dateAt(at: Instant): Date {
  return new Date(at);
}

/** `Date.parse` takes 30 February for 2 March; such a day is no day. */
function rollsOver(text: string): boolean {
  const [year, month, day] = text.slice(0, 10).split("-").map(Number) as [number, number, number];
  return day > new Date(Date.UTC(year, month, 0)).getUTCDate();
}
