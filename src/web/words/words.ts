/** The texts of the page in each language; the types ensure that every language has all of them. */
import type { ActionState, Outcome, Phase } from "../../core/departure/departure.ts";
import type { HeadlineSubject } from "../../core/plan/headline.ts";
import type { Cause } from "../../core/policy/action.ts";
import type { Grouping } from "../list-choice.ts";

export type Language = "en" | "ja";

export interface Words {
  readonly board: string;
  readonly headline: string;
  readonly headlineSubjects: Readonly<Record<HeadlineSubject, string>>;
  readonly departures: string;
  readonly timeline: string;
  readonly outcomes: string;
  readonly node: string;
  readonly zone: string;
  readonly pool: string;
  readonly policy: string;
  readonly time: string;
  readonly why: string;
  readonly status: string;
  readonly cause: string;
  readonly deadline: string;
  readonly earliest: string;
  readonly launched: string;
  readonly window: string;
  readonly leaving: string;
  readonly next: string;
  readonly staying: string;
  readonly departed: string;
  readonly earlierMachines: string;
  readonly nobodyLeaving: string;
  readonly nobodyNext: string;
  readonly noPolicy: string;
  /** A list that the caller may not read is not known to be empty. */
  readonly notRead: string;
  readonly nobodyDeparted: string;
  readonly noMatch: (filter: string) => string;
  readonly onSchedule: string;
  /** It has its place in a plan that cannot be kept as a whole, or that is a dry run. */
  readonly inPlan: string;
  readonly overdue: string;
  readonly held: string;
  readonly onHold: string;
  readonly podsLeft: (left: number, total: number) => string;
  readonly blocked: (pods: number) => string;
  readonly untilDeadline: string;
  readonly beganAt: string;
  readonly inSpan: (span: string) => string;
  readonly agoSpan: (span: string) => string;
  readonly nowWord: string;
  readonly heldBackTo: (time: string) => string;
  readonly holdUntil: (time: string) => string;
  /** Who holds a node, and from when until when, as far as known. */
  readonly heldBy: (by: string | null, since: string | null, until: string | null) => string;
  readonly filter: string;
  readonly filterHint: string;
  readonly sortBy: (column: string) => string;
  readonly groups: string;
  readonly grouped: Readonly<Record<Grouping, string>>;
  /** How many of a group's nodes do not leave as planned. */
  readonly oddCount: (count: number) => string;
  readonly showAll: (count: number) => string;
  readonly matched: (count: number) => string;
  readonly spacing: string;
  readonly wanted: string;
  readonly reached: string;
  readonly best: string;
  readonly feasible: string;
  readonly infeasible: string;
  readonly heldBack: (departures: number) => string;
  readonly paused: string;
  readonly noNodes: string;
  readonly dryRun: string;
  readonly frozenUntil: (time: string) => string;
  readonly unreadable: string;
  readonly hoursShown: (hours: number) => string;
  readonly asTable: string;
  readonly asDrawing: string;
  readonly someLanes: (shown: number, all: number) => string;
  readonly drawing: string;
  readonly legendPlanned: string;
  readonly legendDeadline: string;
  readonly legendEarliest: string;
  readonly legendNotice: string;
  readonly legendShut: string;
  readonly legendFreeze: string;
  readonly legendWave: string;
  readonly waveOf: (wave: number, of: number) => string;
  readonly focusHint: string;
  readonly whatIf: string;
  readonly whatIfHint: string;
  readonly whatIfAt: (time: string) => string;
  readonly whatIfMoved: (count: number) => string;
  readonly whatIfUnmoved: string;
  readonly whatIfNoTemporal: string;
  readonly policyYaml: string;
  readonly reset: string;
  readonly legendBefore: string;
  readonly drainPlan: string;
  readonly drainPlanned: string;
  readonly drainNotice: (seconds: number) => string;
  readonly drainRunning: string;
  readonly asOf: (time: string) => string;
  readonly noPods: string;
  readonly pod: string;
  readonly tier: string;
  readonly tierOrder: string;
  /** By its number. */
  readonly tiers: readonly string[];
  /** How many departures the drawing does not reach. */
  readonly beyond: (count: number) => string;
  readonly overdueCount: (count: number) => string;
  readonly grace: string;
  readonly graceOf: (given: number, asked: number) => string;
  readonly skippedPods: (count: number) => string;
  readonly warnings: string;
  readonly steps: string;
  readonly noSteps: string;
  readonly actions: string;
  readonly attempts: (count: number) => string;
  readonly actionStates: Readonly<Record<ActionState, string>>;
  readonly noNode: (name: string) => string;
  readonly noDrain: string;
  readonly nodeGone: string;
  readonly drainHappened: string;
  readonly happenedSince: (time: string) => string;
  readonly took: string;
  readonly plannedGrace: (start: string, grace: string) => string;
  readonly notTold: string;
  readonly stillThere: string;
  readonly hoursAround: (behind: string, ahead: string) => string;
  readonly days: string;
  readonly day: string;
  readonly podsCut: string;
  readonly cutCount: (count: number) => string;
  readonly newestOf: (shown: number, all: number) => string;
  readonly podsForced: string;
  readonly podsLost: string;
  readonly noticeToCordon: string;
  readonly timeLeft: string;
  readonly atNotice: string;
  readonly atNoticeNote: string;
  readonly figure: string;
  readonly source: string;
  readonly departuresBelow: string;
  readonly prometheusDays: string;
  readonly notices: string;
  readonly half: string;
  readonly nearlyAll: string;
  readonly withinSpan: (span: string) => string;
  readonly atLeastSpan: (span: string) => string;
  readonly lossWords: Readonly<Record<"Killed" | "LeftBehind" | "Forced", string>>;
  readonly outcomeNote: string;
  readonly counted: string;
  readonly countedNote: string;
  readonly nothingCounted: string;
  readonly connecting: string;
  readonly reconnecting: string;
  readonly turnedAway: string;
  readonly awaySince: (time: string) => string;
  readonly missingTitle: string;
  readonly theme: string;
  readonly language: string;
  readonly acts: string;
  readonly noActs: string;
  readonly actHold: string;
  readonly actRelease: string;
  readonly actDepart: string;
  readonly actFreeze: string;
  readonly actThaw: string;
  readonly actWithdraw: string;
  readonly until: string;
  readonly by: string;
  readonly forGood: string;
  readonly todayMorning: string;
  readonly tomorrowMorning: string;
  readonly mondayMorning: string;
  readonly atOnce: string;
  readonly atTime: string;
  readonly chooseTime: string;
  readonly preview: string;
  readonly previewing: string;
  readonly unheard: string;
  readonly confirm: string;
  readonly cancel: string;
  readonly close: string;
  readonly copy: string;
  readonly copied: string;
  readonly selected: string;
  readonly sending: string;
  readonly noAnswer: string;
  readonly drainTakes: (span: string) => string;
  readonly podsLeave: (count: number) => string;
  readonly podsAreCut: (count: number) => string;
  readonly podsBlocked: (count: number) => string;
  readonly fullStop: string;
  readonly skip: string;
  readonly phases: Readonly<Record<Phase, string>>;
  readonly outcomesWords: Readonly<Record<Outcome, string>>;
  /** As in docs/glossary.md. */
  readonly outcomesMean: string;
  readonly outcomeMeanings: Readonly<Record<Outcome, string>>;
  readonly causes: Readonly<Record<Cause, string>>;
}

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
