/** A source of chance: a number in [0, 1). Seeded wherever a run must be repeatable. */
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

/** The same thing is said again after this long. */
const everyMs = 60_000;

/**
 * Lets the first of many like things be said, and then one a minute: a service that is away for an
 * hour is one line a minute, not one a second. Its caller tells the time, on a monotonic clock.
 */
export class Sampler {
  readonly #last = new Map<string, { readonly atMs: number; unsaid: number }>();

  /**
   * Undefined: not now. Else with the number of those that were not said since the last; 0 is left
   * out.
   */
  admit(key: string, nowMs: number): { readonly alsoSince?: number } | undefined {
    const last = this.#last.get(key);
    if (last !== undefined && nowMs - last.atMs < everyMs) {
      last.unsaid += 1;
      return undefined;
    }
    this.#last.set(key, { atMs: nowMs, unsaid: 0 });
    return last === undefined || last.unsaid === 0 ? {} : { alsoSince: last.unsaid };
  }
}
