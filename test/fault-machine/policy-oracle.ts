import type { At } from "./trace.ts";
import type { PolicySpec } from "./world.ts";

/** What a policy says, read here a second time and on purpose not with the code under test. */

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000 };

/** `90m`, `1h30m`. */
export function durationMs(text: string): number {
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)([hms])/g)) {
    sum += Number(amount) * (unitMs[unit ?? ""] ?? Number.NaN);
  }
  return sum;
}

/** The instant by which a machine of this age is to have left by the plan. */
export function deadlineOf({ lifetime }: PolicySpec, bornAt: At): At {
  return bornAt + durationMs(lifetime.max) - durationMs(lifetime.reserve);
}

export function endOfLife({ lifetime }: PolicySpec, bornAt: At): At {
  return bornAt + durationMs(lifetime.max);
}

/** Whether the windows let a planned departure start; they are daily and in UTC. */
export function isOpen({ windows = [] }: PolicySpec, at: At): boolean {
  const covers = ({ start, end }: { start: string; end: string }): boolean => {
    const minute = Math.floor(at / 60_000) % 1440;
    return minute >= minuteOf(start) && minute < minuteOf(end);
  };
  const allows = windows.filter(({ type }) => type === "Allow");
  const denies = windows.filter(({ type }) => type === "Deny");
  return (allows.length === 0 || allows.some(covers)) && !denies.some(covers);
}

function minuteOf(clock: string): number {
  const [hour = 0, minute = 0] = clock.split(":").map(Number);
  return hour * 60 + minute;
}

/** When a machine may start to leave. */
export interface StartRange {
  readonly earliest: At;
  readonly latest: At;
  readonly inWindows: boolean;
}

/**
 * The range of a machine born then, as seen at an instant: up to its deadline, in a window. One
 * that has no open window until then leaves from its deadline on, and both this one and one that
 * has missed its deadline may use the reserve.
 */
export function startRange(policy: PolicySpec, bornAt: At, at: At): StartRange {
  const deadline = deadlineOf(policy, bornAt);
  const latest = endOfLife(policy, bornAt);
  const until = deadline > at ? deadline : latest;
  if (nextOpen(policy, at) <= until) return { earliest: at, latest: until, inWindows: true };
  return { earliest: Math.max(at, deadline), latest, inWindows: false };
}

/**
 * The largest gap, up to `wantedMs`, with which machines could start one after another after
 * `from`: the one that must leave first, each as early as its range lets it.
 */
export function bestGapMs(
  policy: PolicySpec,
  { from, ranges, wantedMs }: { from: At; ranges: readonly StartRange[]; wantedMs: number },
): number {
  const after = ({ earliest, inWindows }: StartRange, at: At): At => {
    const start = Math.max(at, earliest);
    return inWindows ? nextOpen(policy, start) : start;
  };
  const bound = ranges
    .filter((range) => range.latest > from && after(range, from) <= range.latest)
    .toSorted((a, b) => a.latest - b.latest);
  const fits = (gapMs: number): boolean => {
    let at = from;
    return bound.every((range) => {
      at = after(range, at + gapMs);
      return at <= range.latest;
    });
  };
  if (fits(wantedMs)) return wantedMs;
  let [low, high] = [0, wantedMs];
  while (high - low > 1000) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** By policy: for each minute of a day, how many minutes later a window is open. */
const waits = new WeakMap<PolicySpec, readonly number[]>();

const minuteMs = 60_000;
const dayMinutes = 1440;

function waitsOf(policy: PolicySpec): readonly number[] {
  const known = waits.get(policy);
  if (known !== undefined) return known;
  const found = Array.from({ length: dayMinutes }, () => Number.POSITIVE_INFINITY);
  let wait = Number.POSITIVE_INFINITY;
  // Twice around, because a window may open on the next day.
  for (let minute = 2 * dayMinutes - 1; minute >= 0; minute -= 1) {
    wait = isOpen(policy, minute * minuteMs) ? 0 : wait + 1;
    found[minute % dayMinutes] = wait;
  }
  waits.set(policy, found);
  return found;
}

function nextOpen(policy: PolicySpec, from: At): At {
  const minute = Math.floor(from / minuteMs);
  const wait = waitsOf(policy)[minute % dayMinutes] ?? 0;
  return wait === 0 ? from : (minute + wait) * minuteMs;
}
