/** The shortest interval between two messages with the same key. */
const everyMs = 60_000;

/**
 * Admits the first of many similar messages, and then one per minute: a service that is down for an
 * hour causes one line a minute, not one a second. The caller passes the time of a monotonic clock.
 */
export class Sampler {
  readonly #last = new Map<string, { readonly atMs: number; unsaid: number }>();

  /**
   * Undefined if the message is suppressed. Otherwise, the number of messages suppressed since the
   * last one; 0 is omitted.
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
