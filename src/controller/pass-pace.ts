import { type Millis, millis, seconds } from "../core/time/time.ts";

/** Changes come in bursts; a pass after the first of them waits at least so long for the others. */
const gatherMs: Millis = millis(20);
/** From the end of a pass to the next at the least. */
const leastMs: Millis = millis(200);
/** Nobody who asks for a departure should wait for longer. */
const mostMs: Millis = seconds(5);
/** For each second of thought so many of rest. */
const restShare = 9;

/**
 * How long a pass that a change has asked for waits for further ones, where the pass before was in
 * thought for `thoughtMs` and has been over for `restedMs`. In a fleet in which something changes all the time,
 * thought then takes a tenth of a core (more only where a pass is over half a second), and the fast
 * side is not kept waiting by pass upon pass. In a quiet one nobody waits for what was rested already.
 */
export function gatherAfter(before: {
  readonly thoughtMs: Millis;
  readonly restedMs: Millis;
}): Millis {
  const restMs = Math.min(mostMs, Math.max(leastMs, before.thoughtMs * restShare));
  return millis(Math.max(gatherMs, restMs - before.restedMs));
}
