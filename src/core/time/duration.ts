import { type Millis, millis } from "./time.ts";

/** Milliseconds in each unit of a Go-style duration; nano- and microseconds round to milliseconds. */
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

/**
 * Reads a Go-style duration such as `12h30m`, `90s` or `0`; undefined for anything else.
 * Negative durations are not durations here: nothing in Lastcall lasts less than no time.
 */
export function parseDuration(text: string): Millis | undefined {
  if (text === "0") return millis(0);
  if (!whole.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit] of text.matchAll(part)) {
    totalMs += Number(count) * (unitMs[unit as string] as number);
  }
  return millis(Math.round(totalMs));
}

/** Writes a span as Go does, without zero parts: `24h`, `12h30m`, `1m5s`, `250ms`, `0s`. */
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
