/** Times and spans as people read them, in the viewer's language and time zone. */
import type { Words } from "./words-english.ts";

export type Language = "en" | "ja";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const units: Readonly<Record<Language, readonly [string, string, string, string]>> = {
  en: [" d", " h", " min", " s"],
  ja: ["日", "時間", "分", "秒"],
};

/** The two largest parts, rounded to the smaller of them: `2 h 5 min`, `45 s`. */
export function spanText(ms: number, language: Language): string {
  const [day, hour, minute, second] = units[language];
  const least = Math.max(0, Math.round(ms / 1000)) * 1000;
  const inMinutes = rounded(ms, minuteMs);
  if (inMinutes >= dayMs) return parts(rounded(ms, hourMs), [dayMs, day], [hourMs, hour]);
  if (inMinutes >= hourMs) return parts(inMinutes, [hourMs, hour], [minuteMs, minute]);
  if (inMinutes >= 10 * minuteMs) return parts(inMinutes, [minuteMs, minute]);
  if (least >= minuteMs) return parts(least, [minuteMs, minute], [1000, second]);
  return parts(least, [1000, second]);
}

function rounded(ms: number, to: number): number {
  return Math.round(ms / to) * to;
}

/** Foreign text within a sentence, with its own text direction (FSI and PDI of Unicode). */
export function isolated(text: string): string {
  return /^[ -~]*$/.test(text) ? text : `\u2068${text}\u2069`;
}

/** `30 s`, `1.3 s`. */
export function secondsText(count: number, language: Language): string {
  const shown = Number.isInteger(count) ? String(count) : count.toFixed(1);
  return `${shown}${units[language][3]}`;
}

/** With tenths of a second for short durations. */
export function fineSpanText(ms: number, language: Language): string {
  return ms < 10_000 ? secondsText(ms / 1000, language) : spanText(ms, language);
}

function parts(ms: number, ...of: readonly (readonly [number, string])[]): string {
  let rest = ms;
  const said = of.map(([size, unit], place) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return place > 0 && count === 0 ? "" : `${count}${unit}`;
  });
  return said.filter((part) => part !== "").join(" ");
}

/** `1:42`, `1:02:03`: a countdown on a clock. */
export function countdown(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000));
  const two = (part: number): string => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  const seconds = two(total % 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${seconds}` : `${minutes}:${seconds}`;
}

/** `in 5 min`, `5 min ago`, `now`. */
export function relativeText(at: number, now: number, about: Speech): string {
  const { words, language } = about;
  const ms = at - now;
  if (Math.abs(ms) < 1000) return words.nowWord;
  const span = spanText(Math.abs(ms), language);
  return ms > 0 ? words.inSpan(span) : words.agoSpan(span);
}

export interface Speech {
  readonly words: Words;
  readonly language: Language;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** `key` distinguishes these options from others. */
function format(
  key: string,
  language: Language,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const whole = `${language} ${key}`;
  const found =
    formats.get(whole) ?? new Intl.DateTimeFormat(language === "ja" ? "ja-JP" : "en-GB", options);
  formats.set(whole, found);
  return found;
}

const minuteTexts = new Map<string, string>();
/** The size of the cache: what is rendered every second changes its text at most once a minute. */
const mostTexts = 20_000;

/** The same for all instants of a minute. */
function perMinute(key: string, at: number, write: (at: number) => string): string {
  const whole = `${key}${Math.floor(at / minuteMs)}`;
  const found = minuteTexts.get(whole);
  if (found !== undefined) return found;
  const text = write(at);
  if (minuteTexts.size >= mostTexts) minuteTexts.clear();
  minuteTexts.set(whole, text);
  return text;
}

/** `21:04`, on the viewer's clock. */
export function clockText(at: number): string {
  return perMinute("", at, (instant) =>
    format("clock", "en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(instant),
  );
}

/** `21:04:31`. */
export function clockSecondsText(at: number): string {
  const parts = {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  } as const;
  return format("seconds", "en", parts).format(at);
}

/** `Fri 20 Nov`. */
export function dayText(at: number, language: Language): string {
  return perMinute(language, at, (instant) =>
    format("day", language, { weekday: "short", day: "numeric", month: "short" }).format(instant),
  );
}

/** With the day if it is not today. */
export function momentText(at: number, now: number, language: Language): string {
  const day = dayText(at, language);
  return day === dayText(now, language) ? clockText(at) : `${day} ${clockText(at)}`;
}

/** `UTC+9`: the zone of the page's times. */
export function zoneText(at: number, language: Language): string {
  const found = format("zone", language, { timeZoneName: "shortOffset" })
    .formatToParts(at)
    .find(({ type }) => type === "timeZoneName");
  return (found?.value ?? "").replace("GMT", "UTC");
}
