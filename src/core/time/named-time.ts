import {
  between,
  dayMs,
  formatDuration,
  formatInstant,
  formatRounded,
  hours,
  type Instant,
  instant,
  instantOfWall,
  type Millis,
  millis,
  minuteMs,
  minutes,
  parseDuration,
  parseInstant,
  plus,
  seconds,
  wallOfInstant,
  wallTime,
} from "./time.ts";

/** A time as a person names it: `2026-12-01T00:00:00Z`, `2h` from now, `22:00`, or `now`. */
export type NamedTime =
  | { readonly kind: "Now" }
  | { readonly kind: "At"; readonly at: Instant }
  | { readonly kind: "In"; readonly spanMs: Millis }
  /** The next time that a clock on the wall shows it. */
  | { readonly kind: "Clock"; readonly minute: number };

/** What a named time is relative to. */
export interface LocalNow {
  readonly now: Instant;
  /** An IANA name such as `Europe/Berlin`. */
  readonly timeZone: string;
}

/** Undefined for anything that is not a named time, and for a span of nothing. */
export function parseNamedTime(text: string): NamedTime | undefined {
  if (text === "now") return { kind: "Now" };
  const at = parseInstant(text);
  if (at !== undefined) return { kind: "At", at };
  const clock = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text);
  if (clock !== null) return { kind: "Clock", minute: Number(clock[1]) * 60 + Number(clock[2]) };
  const spanMs = parseDuration(text);
  return spanMs === undefined || spanMs === 0 ? undefined : { kind: "In", spanMs };
}

export function instantOfNamedTime(time: NamedTime, { now, timeZone }: LocalNow): Instant {
  switch (time.kind) {
    case "Now":
      return now;
    case "At":
      return time.at;
    case "In":
      return wholeSecond(plus(now, time.spanMs));
    case "Clock":
      return nextOnWall(time.minute, { now, timeZone });
  }
}

/** Whether it has to be said back: it depends on now, or on the time zone of this computer. */
export function isRelative({ kind }: NamedTime): boolean {
  return kind === "In" || kind === "Clock";
}

/** Nobody means milliseconds. Rounded up: `1s` is not over at once. */
function wholeSecond(at: Instant): Instant {
  return instant(Math.ceil(at / 1000) * 1000);
}

function nextOnWall(minute: number, { now, timeZone }: LocalNow): Instant {
  const midnight = Math.floor(wallOfInstant(now, timeZone) / dayMs) * dayMs;
  const [today, tomorrow] = [0, dayMs].map((days) =>
    instantOfWall(wallTime(midnight + days + minute * minuteMs), timeZone),
  ) as [Instant, Instant];
  return today > now ? today : tomorrow;
}

/**
 * An instant with its zone, so that nobody has to guess which was meant: `22:00 Europe/Berlin
 * (21:00Z), in 3h`. Another day than today is named.
 */
export function sayLocally(at: Instant, { now, timeZone }: LocalNow): string {
  const local = wallText(at, timeZone);
  const told = dateOf(local) === dateOf(wallText(now, timeZone)) ? local.slice(11) : local;
  const ahead = spanText(between(now, at));
  if (timeZone === "UTC") return `${told.replace("T", " ")} UTC, ${ahead}`;
  const utc = wallText(at, "UTC");
  const meant = dateOf(utc) === dateOf(local) ? utc.slice(11) : utc;
  return `${told.replace("T", " ")} ${timeZone} (${meant}Z), ${ahead}`;
}

/** `2026-11-20T22:00`, with seconds unless they are zero. */
function wallText(at: Instant, timeZone: string): string {
  // As if the zone were UTC, which is how a WallTime counts.
  const shown = formatInstant(instant(wallOfInstant(at, timeZone))).slice(0, 19);
  return shown.endsWith(":00") ? shown.slice(0, -3) : shown;
}

function dateOf(wall: string): string {
  return wall.slice(0, 10);
}

/** Above an hour, seconds are of no interest. */
function spanText(span: Millis): string {
  const unitMs = span >= 60 * minuteMs ? minuteMs : 1000;
  return `in ${formatRounded(millis(Math.round(span / unitMs) * unitMs))}`;
}

/**
 * The value of an annotation such as `lastcall.dev/hold` that is meant by `yes` or `4 hours`, with
 * its quotes: YAML reads a bare `true` as a boolean, which no annotation may have.
 */
export function markMeant(text: string): string | undefined {
  const word = text.trim();
  if (/^(?:true|yes|on)$/i.test(word)) return '"true"';
  if (/^(?:false|no|off)$/i.test(word)) return '"false"';
  const meant = durationMeant(word) ?? instantMeant(word);
  return meant && JSON.stringify(meant);
}

/**
 * The instant that is meant by `2026-12-01`, `2026-12-01 22:00` or `2026-12-01T22:00+09:00`; in UTC
 * without a zone. By a day that its month does not have, the last one that it has.
 */
export function instantMeant(text: string): string | undefined {
  const [, month, day, minute = "00:00", second = ":00", zone = "Z"] =
    /^(\d{4}-\d\d-)(\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? [];
  return [day, 30, 29, 28]
    .map((one) => `${month}${one}T${minute}${second}${zone}`)
    .find(parseInstant);
}

/** The time of day that is meant by `10pm`, `6:30 am`, `22h`, `22.00` or `24:00`. */
export function clockMeant(text: string): string | undefined {
  const [, digits, minute = "00", half] =
    /^(2[0-4]|[01]?\d)(?:[:.h]([0-5]\d)?)? ?([ap])?m?$/.exec(text.toLowerCase()) ?? [];
  const hour = (Number(digits) % (half ? 12 : 24)) + (half === "p" ? 12 : 0);
  return digits && `${hour}:${minute}`.padStart(5, "0");
}

const unitsInWords: Readonly<Record<string, (count: number) => Millis>> = {
  ...{ s: seconds, m: minutes, h: hours },
  d: (count) => hours(24 * count),
  w: (count) => hours(7 * 24 * count),
};

/** Whether it is a duration that is only too long, such as `99999999999h`. */
export function isDurationText(text: string): boolean {
  return /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(text);
}

/** The duration that is meant by `24 hours`, `90sec`, `1d` or `2 weeks`. */
export function durationMeant(text: string): string | undefined {
  const words =
    /^\+?(\d{1,5}) ?(?:(s)(?:ec(?:ond)?s?)?|(m)in(?:ute)?s?|(h)(?:(?:ou)?rs?)?|(d)(?:ays?)?|(w)(?:eeks?)?)$/i;
  const [, count, ...found] = words.exec(text) ?? [];
  const unit = unitsInWords[found.find((one) => one !== undefined)?.toLowerCase() ?? ""];
  return unit && formatDuration(unit(Number(count)));
}
