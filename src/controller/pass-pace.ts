import { type Millis, millis, minutes, seconds } from "../core/time/time.ts";

/** Changes come in bursts: a pass waits at least this long after the first one. */
const batchMs: Millis = millis(20);
/** The shortest pause between two passes. */
const leastMs: Millis = millis(200);
/**
 * The shortest pause between two passes if what the first has moved is all that is new, and between
 * many that only the time is the reason for. With a spent budget and a near deadline each pass has
 * a slightly better plan, and an instant that is slightly ahead.
 */
const leastWithoutNewsMs: Millis = seconds(1);
/** The longest delay of a requested departure. */
const mostMs: Millis = seconds(5);
/** The pause after a decision, as a multiple of its duration. */
const restShare = 9;

/** What determines when the next pass may come. */
export interface LastPass {
  /** How long it took to decide. */
  readonly decidingMs: Millis;
  /** How long ago it ended. */
  readonly restedMs: Millis;
  /** Whether it has moved planned departures, so that its own writes may be all that is new. */
  readonly hasMoved?: boolean;
  /** When it wanted the next one at the latest, from now on. */
  readonly nextInMs?: number;
  /** How many passes in a row, including this one, wanted the next one within a second. */
  readonly quickPasses?: number;
}

/**
 * How long a pass waits for further changes. In a fleet that changes all the time, deciding thereby
 * takes a tenth of a core (more only if a pass takes over half a second), and notices are not
 * delayed by one pass after another. In a quiet fleet the time since the last pass counts as
 * waited. What has moved delays no start, unless one pass after another announces one.
 */
export function gatherAfter(before: LastPass): Millis {
  const { hasMoved = false, nextInMs = Number.POSITIVE_INFINITY, quickPasses = 0 } = before;
  const soonest = gathering(before, leastMs);
  if (!hasMoved) return soonest;
  const latest = gathering(before, leastWithoutNewsMs);
  return quickPasses > 1 ? latest : millis(Math.max(soonest, Math.min(latest, nextInMs)));
}

function gathering({ decidingMs, restedMs }: LastPass, shortestMs: Millis): Millis {
  const restMs = Math.min(mostMs, Math.max(shortestMs, decidingMs * restShare));
  return millis(Math.max(batchMs, restMs - restedMs));
}

/**
 * How long a pass that only the time is the reason for waits after the one before. Of two in a row
 * the second one may be a start, which is to be on time.
 */
export function timedAfter(quickPasses: number): Millis {
  if (quickPasses <= 1) return millis(0);
  return millis(Math.min(leastWithoutNewsMs, firstAgainMs * 2 ** (quickPasses - 2)));
}

/** The pause before a pass is repeated for the same reason, the first time. */
const firstAgainMs: Millis = millis(100);
const mostAgainMs: Millis = minutes(1);

/**
 * How long a pass waits before it repeats acts that have failed in `failedPasses` passes in a row:
 * a moment, because most errors pass, but what is refused for hours is not asked five times a
 * second.
 */
export function againAfter(failedPasses: number): Millis {
  return millis(Math.min(mostAgainMs, firstAgainMs * 2 ** (failedPasses - 1)));
}

/** Whether a pass wants the next one within the pause that many of them keep. */
export function isQuick(nextInMs: number): boolean {
  return nextInMs < leastWithoutNewsMs;
}
