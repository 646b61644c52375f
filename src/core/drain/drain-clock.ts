import { type Millis, millis, minutes, seconds } from "../time/time.ts";

/**
 * The time in which a drain could act. Its timeout counts that time only: not while no replica
 * leads, the API server does not answer, or the process is suspended.
 */
export interface DrainClock {
  /** The time that counts, up to `seenMs`. */
  readonly activeMs: Millis;
  /** When the API server was last known to answer (monotonic). */
  readonly seenMs: number;
}

const longestBeatMs: Millis = minutes(1);
const shortestBeatMs: Millis = seconds(1);

/**
 * How often a drain proves that it can act, by recording the time that counts: ten times within a
 * timeout, and at least once a minute. As little is lost if the leader dies.
 */
export function beatOf(timeoutMs: Millis): Millis {
  const tenthMs = timeoutMs / 10;
  return millis(Math.min(longestBeatMs, Math.max(shortestBeatMs, tenthMs)));
}

/** The time that counts by now. Of a longer silence, two beats count. */
export function activeTime(
  clock: DrainClock,
  now: { readonly ms: number; readonly beatMs: Millis },
) {
  const sinceMs = Math.max(0, now.ms - clock.seenMs);
  return millis(clock.activeMs + Math.min(sinceMs, 2 * now.beatMs));
}

/** The clock after an answer of the API server. */
export function answeredAt(
  clock: DrainClock,
  now: { readonly ms: number; readonly beatMs: Millis },
): DrainClock {
  return { activeMs: activeTime(clock, now), seenMs: now.ms };
}

/**
 * The time that counts in whole beats (undefined before the first), and the time until the next. No
 * more is recorded beyond `mostMs`.
 */
export function beatsOf(
  activeMs: Millis,
  { beatMs, mostMs }: { readonly beatMs: Millis; readonly mostMs: Millis },
): { readonly seconds: number | undefined; readonly leftMs: Millis | undefined } {
  const beats = Math.floor(Math.min(activeMs, mostMs) / beatMs);
  const seconds = beats === 0 ? undefined : Math.floor((beats * beatMs) / 1000);
  const leftMs = activeMs < mostMs ? millis((beats + 1) * beatMs - activeMs) : undefined;
  return { seconds, leftMs };
}
