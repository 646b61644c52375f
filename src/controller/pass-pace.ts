import { type Millis, millis, seconds } from "../core/time.ts";

/** Changes come in bursts; a pass after the first of them waits at least so long for the others. */
const leastMs: Millis = millis(200);
/** Nobody who asks for a departure should wait for longer. */
const mostMs: Millis = seconds(5);
/** For each second of thought so many of rest. */
const restShare = 9;

/**
 * How long a pass that a change has asked for waits for further ones, after one that was in thought for
 * this long. A large fleet in which something changes all the time costs a tenth of a core that way, and
 * the fast side, which shares the core, is not kept waiting by one pass upon the other.
 */
export function gatherAfter(thoughtMs: Millis): Millis {
  return millis(Math.min(mostMs, Math.max(leastMs, thoughtMs * restShare)));
}
