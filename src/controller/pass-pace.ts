import { type Millis, millis, seconds } from "../core/time.ts";

/** Changes come in bursts; a pass after the first of them waits at least so long for the others. */
const leastMs: Millis = millis(200);
/** Nobody who asks for a departure should wait for longer. */
const mostMs: Millis = seconds(5);
/** For each second of thought so many of rest. */
const restShare = 9;

/**
 * How long a pass that a change has asked for waits for further ones, after one that was in thought for
 * this long. In a fleet in which something changes all the time, thought then takes a tenth of a core (more
 * only where a pass is over half a second), and the fast side is not kept waiting by pass upon pass.
 */
export function gatherAfter(thoughtMs: Millis): Millis {
  return millis(Math.min(mostMs, Math.max(leastMs, thoughtMs * restShare)));
}
