import type { Weekday } from "../../core/policy/policy.ts";
import { clockMeant } from "../../core/time/named-time.ts";
import { isTimeZone } from "../../core/time/time.ts";
import { didYouMean } from "../problem.ts";
import {
  choiceField,
  type ListField,
  type ObjectField,
  positiveDurationField,
  repeatedName,
  ruleOn,
  type SchemaFields,
  type SchemaRule,
  type SchemaValues,
  type StringField,
  wordsOf,
} from "./field-schema.ts";

const months = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const weekdays = "sun mon tue wed thu fri sat".split(" ");
const weekday = `([0-7]|${weekdays.join("|")})`;

/**
 * The grammar of a five-field cron expression as one regular expression, so that the API server,
 * too, refuses `61 * * * *`. It cannot express that the end of a range lies after its start:
 * `backwardsCronPattern` does. Beyond Vixie cron it accepts what croner accepts: `L` for the last
 * day of the month, `5#1` for the first and `5#L` for the last Friday of it. Names are in lower
 * case: match case-insensitively.
 */
export const cronPattern: string = cronFields([
  { value: "[0-5]?[0-9]", step: "[1-9]|[1-5][0-9]" },
  { value: "(2[0-3]|[01]?[0-9])", step: "[1-9]|1[0-9]|2[0-3]" },
  { value: "(3[01]|[12][0-9]|0?[1-9])", step: "[1-9]|[12][0-9]|3[01]", extra: "L" },
  {
    value: `(1[0-2]|0?[1-9]|${months.join("|")})`,
    step: "[1-9]|1[0-2]",
  },
  { value: weekday, step: "[1-7]", extra: `${weekday}#[1-5L]` },
]);

interface CronField {
  readonly value: string;
  readonly step: string;
  /** What the field accepts in addition to values, ranges and steps. */
  readonly extra?: string;
}

function cronFields(fields: readonly CronField[]): string {
  const written = fields.map(({ value, step, extra }) => {
    const plain = `\\*(/(${step}))?|${value}(-${value}(/(${step}))?)?`;
    const item = `(${extra === undefined ? plain : `${extra}|${plain}`})`;
    return `${item}(,${item})*`;
  });
  return `^${written.join(" +")}$`;
}

/**
 * An expression of that grammar with a range that runs backwards, as one regular expression: CEL
 * could compare numbers, but at a cost that the API server does not allow for a list of windows.
 */
export const backwardsCronPattern: string = `(^|[ ,])(${[
  ...backwardsNumbers(),
  ...backwardsNames(months, { from: 1, most: 12 }),
  ...backwardsNames(weekdays, { from: 0, most: 7 }),
].join("|")})($|[ ,/])`;

/** Both ends are 0 to 59, with a leading zero or without. */
function backwardsNumbers(): readonly string[] {
  const tens = ["0?", "1", "2", "3", "4", "5"];
  return tens.flatMap((ten, place) => [
    ...(place < 5 ? [`[${place + 1}-5][0-9]-${ten}[0-9]`] : []),
    ...Array.from({ length: 9 }, (_, unit) => `${ten}[${unit + 1}-9]-${ten}${unit}`),
  ]);
}

/** At least one end is a name. A range may end with Sunday, which is then the seventh day. */
function backwardsNames(
  names: readonly string[],
  { from, most }: { readonly from: number; readonly most: number },
): readonly string[] {
  const numbers = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, place) => `0?${first + place}`);
  return names.flatMap((name, place) => {
    const value = from + place;
    const before = [
      ...names.slice(0, place).filter((one) => one !== "sun"),
      ...numbers(0, value - 1),
    ];
    const after = name === "sun" ? [] : numbers(value + 1, most);
    return [
      ...(before.length === 0 ? [] : [`${name}-(${before.join("|")})`]),
      ...(after.length === 0 ? [] : [`(${after.join("|")})-${name}`]),
    ];
  });
}

/** Every part of an IANA name starts with a capital letter. */
const ianaForm = "^[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*$";

const timeZone = {
  type: "string",
  description:
    "The IANA time zone of the window, such as `Asia/Tokyo`; its daylight saving time applies.",
  default: "UTC",
  pattern: "^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
  maxLength: 64,
  wanted: "an IANA time zone such as Asia/Tokyo",
  rules: [
    ruleOn<string>({
      // CEL has no list of zones, but fails if it cannot tell the hour in one, and a failure is a
      // refusal. Beyond the IANA names it accepts the server's own zone, and files next to the
      // zones.
      cel: `self.matches('${ianaForm}') && !(self in ['Local', 'Factory']) && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0`,
      wanted: "an IANA time zone such as Asia/Tokyo",
      holds: isKnownTimeZone,
      found: (zone) => {
        const near = zoneMeant(zone);
        return near === undefined ? JSON.stringify(zone) : `${JSON.stringify(zone)} (${near}?)`;
      },
    }),
  ],
} as const satisfies StringField;

const dayNames = wordsOf<Weekday>({
  ...{ Mon: true, Tue: true, Wed: true, Thu: true },
  ...{ Fri: true, Sat: true, Sun: true },
});

/** The days that are meant by `monday` or `Mon-Fri`. */
function daysMeant(text: string): string | undefined {
  const [from, to, ...more] = text.split(/ ?[-–] ?| to /).map((name) => {
    const short = /^(mon|tue|wed|thu|fri|sat|sun)(?:[a-z]*day)?$/i.exec(name.trim())?.[1];
    return dayNames.findIndex((day) => day.toLowerCase() === short?.toLowerCase());
  });
  if (from === undefined || from < 0 || more.length > 0) return undefined;
  if (to === undefined) return dayNames[from];
  if (to < 0) return undefined;
  const count = ((to - from + 7) % 7) + 1;
  return Array.from({ length: count }, (_, place) => dayNames[(from + place) % 7]).join(", ");
}

const days = {
  type: "list",
  description:
    "The days on which the window starts; if not set, every day. A window over midnight belongs to the day on which it starts.",
  minItems: 1,
  maxItems: 7,
  unique: true,
  wanted: "at least one of Mon, Tue, Wed, Thu, Fri, Sat, Sun (for every day, omit the field)",
  items: {
    ...choiceField({ description: "A day of the week.", choices: dayNames }),
    meant: daysMeant,
  },
} as const satisfies ListField;

const cronWanted = "five cron fields (minute hour day month weekday) such as 0 18 * * 5";
const cronGrammar = new RegExp(cronPattern, "i");

const cron: StringField = {
  type: "string",
  description:
    "Instead of `days`, `start` and `end`: five cron fields (minute, hour, day of month, month, day of week) that say when the window starts.",
  maxLength: 128,
  wanted: cronWanted,
  rules: [
    // A rule instead of a `pattern`: the server's message would contain the pattern, which has a
    // thousand characters.
    ruleOn<string>({
      cel: `self.matches(r'(?i)${cronPattern}')`,
      wanted: cronWanted,
      holds: (expression) => cronGrammar.test(expression),
    }),
    ruleOn<string>({
      cel: `!self.matches(r'(?i)${backwardsCronPattern}')`,
      wanted: cronWanted,
      holds: (expression, world) =>
        !cronGrammar.test(expression) || world.cronProblem(expression) === undefined,
      found: (expression, world) =>
        `${JSON.stringify(expression)} (${world.cronProblem(expression)})`,
    }),
  ],
};

const windowFields = {
  name: {
    type: "string",
    description: "The window's name in plans and messages; if not set, its position in the list.",
    minLength: 1,
    maxLength: 63,
    wanted: "a name of 1 to 63 characters",
  },
  type: choiceField({
    description:
      "`Allow` opens, `Deny` closes and takes precedence. With only Deny windows, all other times are open.",
    choices: ["Allow", "Deny"],
    default: "Allow",
  }),
  timeZone,
  days,
  start: {
    type: "string",
    description:
      "Local time at which the window opens. A time that a day skips moves to the next instant that exists; of a time that occurs twice, the first is meant.",
    pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$",
    maxLength: 5,
    wanted: "HH:MM from 00:00 to 23:59",
    meant: clockMeant,
  },
  end: {
    type: "string",
    description:
      "Local time at which it closes (exclusive); up to `24:00`. At or before `start` it means the next day.",
    pattern: "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
    maxLength: 5,
    wanted: "HH:MM from 00:00 to 24:00",
    meant: clockMeant,
  },
  cron,
  duration: positiveDurationField({ description: "How long a window with `cron` stays open." }),
} as const satisfies SchemaFields;
type WrittenWindow = SchemaValues<typeof windowFields>;

const nothing = () => "nothing";

const windowRules: readonly SchemaRule[] = [
  ruleOn<WrittenWindow>({
    cel: "has(self.cron) || has(self.start) || has(self.end)",
    wanted: "start with end, or cron with duration",
    holds: ({ cron, start, end }) => (cron ?? start ?? end) !== undefined,
    found: () => "a window without either",
  }),
  ruleOn<WrittenWindow>({
    cel: "!has(self.cron) || (!has(self.start) && !has(self.end))",
    at: "cron",
    wanted: "either cron with duration or start with end, not both",
    holds: ({ cron, start, end }) => cron === undefined || (start ?? end) === undefined,
    found: ({ start }) => `cron beside ${start === undefined ? "end" : "start"}`,
  }),
  ruleOn<WrittenWindow>({
    cel: "has(self.cron) || !has(self.start) || has(self.end)",
    at: "end",
    wanted: "an end with start, such as 06:00",
    holds: ({ cron, start, end }) => (cron ?? end) !== undefined || start === undefined,
    found: nothing,
  }),
  ruleOn<WrittenWindow>({
    cel: "has(self.cron) || !has(self.end) || has(self.start)",
    at: "start",
    wanted: "a start with end, such as 22:00",
    holds: ({ cron, start, end }) => (cron ?? start) !== undefined || end === undefined,
    found: nothing,
  }),
  ruleOn<WrittenWindow>({
    cel: "!has(self.start) || !has(self.end) || self.start != self.end",
    at: "end",
    wanted: "a time other than start (for a whole day, use 00:00 to 24:00)",
    holds: ({ start, end }) => start === undefined || start !== end,
  }),
  ruleOn<WrittenWindow>({
    cel: "!has(self.cron) || has(self.duration)",
    at: "duration",
    wanted: "a duration with cron, such as 6h",
    holds: ({ cron, duration }) => cron === undefined || duration !== undefined,
    found: nothing,
  }),
  ruleOn<WrittenWindow>({
    cel: "!has(self.duration) || has(self.cron)",
    at: "duration",
    wanted: "duration only with cron (a window with start has an end)",
    holds: ({ cron, duration }) => duration === undefined || cron !== undefined,
  }),
  ruleOn<WrittenWindow>({
    cel: "!has(self.cron) || !has(self.days)",
    at: "days",
    wanted: "no days with cron, which has its own",
    holds: ({ cron, days }) => cron === undefined || days === undefined,
  }),
];

const windowField = {
  type: "object",
  description: "One window: weekly with `start` and `end`, or with `cron` and `duration`.",
  properties: windowFields,
  rules: windowRules,
} as const satisfies ObjectField;

/** `spec.windows`. */
export const windowsField = {
  type: "list",
  description:
    "When planned departures may start. If empty, at any time. A node for which no window opens in time leaves at its deadline, with a warning Event.",
  default: [],
  maxItems: 64,
  items: windowField,
  rules: [
    ruleOn<readonly WrittenWindow[]>({
      cel: "self.all(w, !has(w.name) || self.exists_one(o, has(o.name) && o.name == w.name))",
      wanted: "a unique name for each window",
      holds: (windows) => repeatedName(windows) === undefined,
      found: (windows) => `the name ${JSON.stringify(repeatedName(windows))} twice`,
    }),
  ],
} as const satisfies ListField;

/**
 * Whether this runtime's IANA database has the zone; links such as Asia/Calcutta count.
 * `asia/tokyo` and `JST` do not, although parts of this runtime would accept them: the API server
 * does not know them.
 */
function isKnownTimeZone(name: string): boolean {
  if (!isTimeZone(name)) return false;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    return timeZone === name || timeZone.toLowerCase() !== name.toLowerCase();
  } catch {
    return false;
  }
}

/** Abbreviations that are used for one zone much more than for any other. */
const zonesOfAbbreviations: Readonly<Record<string, string>> = {
  ...{ CET: "Europe/Berlin", CEST: "Europe/Berlin", BST: "Europe/London" },
  ...{ PST: "America/Los_Angeles", PDT: "America/Los_Angeles" },
  ...{ EST: "America/New_York", EDT: "America/New_York" },
  ...{ JST: "Asia/Tokyo", KST: "Asia/Seoul", AEST: "Australia/Sydney" },
};

/** The zone that is meant by `CEST`, `Berlin`, `New York` or `Asia/Tokio`. */
function zoneMeant(text: string): string | undefined {
  const names = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const city = text.toLowerCase().replaceAll(" ", "_");
  return (
    zonesOfAbbreviations[text.toUpperCase()] ??
    names.find((name) => name.toLowerCase().endsWith(`/${city}`)) ??
    didYouMean(text, names)
  );
}
