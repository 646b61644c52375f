import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import {
  allowedSpans,
  openHours,
  windowNameAt,
  windowProblem,
} from "../../../src/core/limits/windows.ts";
import type { Weekday, Window } from "../../../src/core/policy/policy.ts";
import {
  formatInstant,
  hours,
  type Instant,
  instant,
  mergeSpans,
  millis,
  parseInstant,
} from "../../../src/core/time/time.ts";

const everyDay: readonly Weekday[] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function at(text: string): Instant {
  const found = parseInstant(text);
  if (found === undefined) throw new RangeError(text);
  return found;
}

interface WeeklyText {
  readonly zone: string;
  readonly start: string;
  readonly end: string;
  readonly days?: readonly Weekday[];
  readonly type?: "Allow" | "Deny";
}

function weekly({ zone, start, end, days = everyDay, type = "Allow" }: WeeklyText): Window {
  const minute = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
  const common = { kind: "Weekly", name: `${start}-${end}`, type, timeZone: zone, days } as const;
  return { ...common, startMinute: minute(start), endMinute: minute(end) };
}

function cron(zone: string, expression: string, durationHours: number): Window {
  const common = { kind: "Cron", name: expression, type: "Allow", timeZone: zone } as const;
  return { ...common, cron: expression, durationMs: hours(durationHours) };
}

function shown(windows: readonly Window[], from: string, until: string): readonly string[] {
  return allowedSpans(windows, at(from), at(until)).map(
    (span) =>
      `${formatInstant(span.startAt).slice(0, 16)} ${formatInstant(span.endAt).slice(0, 16)}`,
  );
}

describe("windows", () => {
  it("are always open if there are none", () => {
    expect(shown([], "2026-11-20T00:00:00Z", "2026-11-22T00:00:00Z")).toEqual([
      "2026-11-20T00:00 2026-11-22T00:00",
    ]);
  });

  it("that span midnight belong to the day on which they start", () => {
    // Friday night in Tokyo is 13:00 to 21:00 UTC on Friday; Saturday has none.
    const friday = weekly({ zone: "Asia/Tokyo", start: "22:00", end: "06:00", days: ["Fri"] });
    expect(shown([friday], "2026-11-20T15:00:00Z", "2026-12-01T00:00:00Z")).toEqual([
      "2026-11-20T15:00 2026-11-20T21:00",
      "2026-11-27T13:00 2026-11-27T21:00",
    ]);
  });

  it("that cover whole days merge into one span", () => {
    const weekend = weekly({ zone: "UTC", start: "00:00", end: "24:00", days: ["Sat", "Sun"] });
    expect(shown([weekend], "2026-11-16T00:00:00Z", "2026-11-30T00:00:00Z")).toEqual([
      "2026-11-21T00:00 2026-11-23T00:00",
      "2026-11-28T00:00 2026-11-30T00:00",
    ]);
  });

  it("of type Deny leave all other times allowed, and cut holes into Allow windows", () => {
    const noon = weekly({ zone: "UTC", start: "12:00", end: "13:00", type: "Deny" });
    expect(shown([noon], "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")).toEqual([
      "2026-11-20T00:00 2026-11-20T12:00",
      "2026-11-20T13:00 2026-11-21T00:00",
    ]);
    const day = weekly({ zone: "UTC", start: "09:00", end: "12:30" });
    expect(shown([noon, day], "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")).toEqual([
      "2026-11-20T09:00 2026-11-20T12:00",
    ]);
  });

  it("in cron syntax keep their duration even if they opened before the requested range", () => {
    expect(
      shown([cron("Asia/Tokyo", "0 18 * * 5", 6)], "2026-11-20T14:00:00Z", "2026-12-01T00:00:00Z"),
    ).toEqual(["2026-11-20T14:00 2026-11-20T15:00", "2026-11-27T09:00 2026-11-27T15:00"]);
  });

  it("that never open allow nothing", () => {
    const never = cron("UTC", "0 0 31 2 *", 1);
    expect(shown([never], "2026-11-20T00:00:00Z", "2026-11-25T00:00:00Z")).toEqual([]);
  });

  it.each([
    // New York, 8 March 2026: 02:00 becomes 03:00, which is 07:00 UTC.
    ["a skipped start moves to the change", "02:30", "04:00", "2026-03-08", "07:00", "08:00"],
    ["a skipped end moves to the change", "01:00", "02:30", "2026-03-08", "06:00", "07:00"],
    ["a whole day has 23 hours", "00:00", "24:00", "2026-03-08", "05:00", "04:00"],
    // New York, 1 November 2026: 02:00 becomes 01:00; 01:30 comes at 05:30 and at 06:30 UTC.
    ["a repeated start is the first", "01:30", "02:30", "2026-11-01", "05:30", "07:30"],
    ["a repeated end is the first", "00:30", "01:30", "2026-11-01", "04:30", "05:30"],
    ["a whole day has 25 hours", "00:00", "24:00", "2026-11-01", "04:00", "05:00"],
  ])("across a clock change: %s", (_, start, end, day, opens, closes) => {
    const sunday = weekly({ zone: "America/New_York", start, end, days: ["Sun"] });
    const from = instant(at(`${day}T00:00:00Z`) + 1);
    const [span] = allowedSpans([sunday], from, instant(from + hours(40)));
    expect(formatInstant(span?.startAt ?? from).slice(11, 16)).toBe(opens);
    expect(formatInstant(span?.endAt ?? from).slice(11, 16)).toBe(closes);
  });

  it("whose start and end are both skipped do not open on that day", () => {
    const lost = weekly({ zone: "America/New_York", start: "02:10", end: "02:50", days: ["Sun"] });
    expect(shown([lost], "2026-03-08T00:00:00Z", "2026-03-09T12:00:00Z")).toEqual([]);
  });

  it("in cron syntax move over a skipped hour as weekly ones do", () => {
    expect(
      shown(
        [cron("America/New_York", "30 2 * * *", 1)],
        "2026-03-08T00:00:00Z",
        "2026-03-09T12:00:00Z",
      ),
    ).toEqual(["2026-03-08T07:00 2026-03-08T08:00", "2026-03-09T06:30 2026-03-09T07:30"]);
  });

  it("are named by the first Allow window with the instant, and null if it is denied", () => {
    const bounds = { startAt: at("2026-11-20T00:00:00Z"), endAt: at("2026-11-21T00:00:00Z") };
    const windows = [
      weekly({ zone: "UTC", start: "02:00", end: "06:00" }),
      weekly({ zone: "UTC", start: "04:00", end: "08:00" }),
      weekly({ zone: "UTC", start: "07:00", end: "09:00", type: "Deny" }),
    ];
    const open = openHours(windows, bounds);
    expect(windowNameAt(open, at("2026-11-20T05:00:00Z"))).toBe("02:00-06:00");
    expect(windowNameAt(open, at("2026-11-20T06:00:00Z"))).toBe("04:00-08:00");
    expect(windowNameAt(open, at("2026-11-20T07:30:00Z"))).toBeNull();
  });

  it.each([
    ["an unknown zone", weekly({ zone: "Mars/Base", start: "01:00", end: "02:00" }), /Mars\/Base/],
    ["six cron fields", cron("UTC", "0 0 0 * * *", 1), /6 fields, expected five/],
    ["a cron minute of 61", cron("UTC", "61 * * * *", 1), /61/],
  ])("have a problem with %s", (_, window, problem) => {
    expect(windowProblem(window)).toMatch(problem);
  });
});

/** The wall clock, computed with another part of the platform than the planner uses. */
function wallClock(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "iso8601",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
  });
  return (epochMs) => {
    const part: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(epochMs)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute);
  };
}

describe("a cron window over a long time", () => {
  const rng = seededRng(17);
  const oneOf = <Item>(...items: readonly Item[]): Item =>
    items[Math.floor(rng() * items.length)] as Item;

  it("opens as it does when computed hour by hour, also across clock changes", () => {
    for (let round = 0; round < 30; round += 1) {
      const expression = [
        oneOf("*", "*/7", "0", "3,33-40", "59"),
        oneOf("*", "*/5", "2", "0,23", "1-3"),
        oneOf("*", "*", "1", "*/9", "L"),
        oneOf("*", "*", "3,11"),
        oneOf("*", "*", "Sun", "1-5", "0#1"),
      ].join(" ");
      const window: Window = {
        ...{ kind: "Cron", name: expression, type: "Allow", cron: expression },
        timeZone: oneOf("UTC", "Europe/Berlin", "America/New_York", "America/Santiago"),
        durationMs: millis(oneOf(60_000, 90_000, 3_600_000, 27 * 3_600_000, 900 * 3_600_000)),
      };
      // Nine days around a clock change in each of these zones.
      const day = oneOf("2026-03-04", "2026-03-25", "2026-03-31", "2026-10-21", "2026-11-28");
      const from = at(`${day}T${oneOf("00:00:00", "05:17:31", "23:59:59")}Z`);
      const hourly = Array.from({ length: 9 * 24 }, (_, hour) => {
        const startAt = instant(from + hour * 3_600_000);
        return openHours([window], { startAt, endAt: instant(startAt + 3_600_000) }).spans;
      });
      const whole = openHours([window], {
        startAt: from,
        endAt: instant(from + 9 * 24 * 3_600_000),
      });
      expect(whole.spans, `${expression} ${window.timeZone}`).toEqual(mergeSpans(hourly.flat()));
    }
  });

  it.each([
    ["every minute for a minute", "* * * * *", 60_000],
    ["every other minute for a minute", "*/2 * * * *", 60_000],
    ["every minute for a year", "* * * * *", 365 * 86_400_000],
  ])("is computed per day and not per opening: %s", (_, expression, durationMs) => {
    const window: Window = {
      ...{ kind: "Cron", name: "w", type: "Allow", timeZone: "Europe/Berlin" },
      ...{ cron: expression, durationMs: millis(durationMs) },
    };
    const startAt = at("2026-01-01T00:00:00Z");
    const beganAt = performance.now();
    openHours([window], { startAt, endAt: instant(startAt + 365 * 86_400_000) });
    // It took 9 to 25 s when each opening was computed separately, and now takes a third of a
    // second.
    expect(performance.now() - beganAt).toBeLessThan(4000);
  });
});

describe("compared with a wall clock that is read minute by minute", () => {
  const changes = [
    ["America/New_York", "2026-03-06"],
    ["America/New_York", "2026-10-30"],
    ["Europe/London", "2026-03-27"],
    ["Europe/Berlin", "2026-10-23"],
    ["Australia/Lord_Howe", "2026-04-03"],
    ["Australia/Lord_Howe", "2026-10-02"],
    ["America/Havana", "2026-03-06"],
    ["Asia/Beirut", "2026-03-27"],
    ["Asia/Kathmandu", "2026-06-01"],
  ] as const;

  it.each(changes)("windows in %s around %s open and close at the same minutes", (zone, day) => {
    const fromMs = at(`${day}T00:00:00Z`) - 36 * 3_600_000;
    const clock = wallClock(zone);
    const minutes = Array.from({ length: 7 * 1440 }, (_, i) => fromMs + i * 60_000);
    const walls = minutes.map(clock);
    const firstAt = (wall: number): number => minutes[walls.findIndex((w) => w >= wall)] ?? 0;
    const rng = seededRng(Number(day.slice(5, 7)) * 31 + zone.length);
    const dates = [1, 2, 3, 4, 5].map((i) => dayOf(walls[i * 1440] ?? 0));
    const inner = minutes.slice(2 * 1440, 5 * 1440);
    for (let left = 40; left > 0; left -= 1) {
      const startMinute = Math.floor(rng() * 1440);
      const endMinute = 1 + ((startMinute + Math.floor(rng() * 1438)) % 1440);
      const untilDay = endMinute <= startMinute ? 1440 : 0;
      const expected = dates.map((date) => [
        firstAt(date + startMinute * 60_000),
        firstAt(date + (untilDay + endMinute) * 60_000),
      ]);
      const window = { ...weekly({ zone, start: "00:00", end: "01:00" }), startMinute, endMinute };
      const bounds = [inner[0] ?? 0, (inner.at(-1) ?? 0) + 60_000].map(instant);
      const spans = allowedSpans([window as Window], bounds[0] as Instant, bounds[1] as Instant);
      const wrong = inner.filter(
        (m) =>
          expected.some(([from = 0, until = 0]) => from <= m && m < until) !==
          spans.some((span) => span.startAt <= m && m < span.endAt),
      );
      expect(wrong, `${startMinute} to ${endMinute}`).toEqual([]);
    }
  });
});

function dayOf(wall: number): number {
  return Math.floor(wall / 86_400_000) * 86_400_000;
}
