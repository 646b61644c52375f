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
