import { type Millis, millis, minutes, seconds } from "../core/time/time.ts";

/** Changes come in bursts: a pass waits at least this long after the first one. */
const batchMs: Millis = millis(20);
/** The shortest pause between two passes. */
const leastMs: Millis = millis(200);
/**
 * The shortest pause between two passes that only the time, or what the first has moved, is the
 * reason for. With a spent budget and a near deadline each pass has a slightly better plan.
 */
export const leastWithoutNewsMs: Millis = seconds(1);
/** The longest delay of a requested departure. */
const mostMs: Millis = seconds(5);
/** The pause after a decision, as a multiple of its duration. */
const restShare = 9;

/**
 * How long a pass waits for further changes, if the pass before took `decidingMs` to decide and
 * ended `restedMs` ago. In a fleet that changes all the time, deciding thereby takes a tenth of a
 * core (more only if a pass takes over half a second), and notices are not delayed by one pass
 * after another. In a quiet fleet the time since the last pass counts as waited.
 */
export function gatherAfter(before: {
  readonly decidingMs: Millis;
  readonly restedMs: Millis;
  /** Whether it has moved planned departures, so that its own writes may be all that is new. */
  readonly hasMoved?: boolean;
}): Millis {
  const shortestMs = before.hasMoved === true ? leastWithoutNewsMs : leastMs;
  const restMs = Math.min(mostMs, Math.max(shortestMs, before.decidingMs * restShare));
  return millis(Math.max(batchMs, restMs - before.restedMs));
}

/** The pause before failed acts are tried again, the first time and at most. */
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
