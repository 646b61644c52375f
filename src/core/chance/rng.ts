/** A source of random numbers in [0, 1). Seeded wherever a run must be repeatable. */
export type Rng = () => number;

/**
 * A small seeded generator (mulberry32, public domain, Tommy Ettinger 2017): 32 bits of state, a
 * period of 2^32, good enough for jitter and simulations and the same on every machine.
 */
export function seededRng(seed: number): Rng {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
