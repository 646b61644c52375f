import { type Millis, millis } from "../time/time.ts";

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

/** Between nine and eleven tenths of a span, so that many clients that poll do not stay in step. */
export function around(spanMs: number, rng: Rng): Millis {
  return millis(Math.round(spanMs * (0.9 + 0.2 * rng())));
}

export interface BackoffLimits {
  /** The longest first pause. Default 100 ms. */
  readonly firstMs?: Millis | undefined;
  /** The longest pause. Default 10 s. */
  readonly mostMs?: Millis | undefined;
}

/**
 * The pause after attempt number `attempt` (from 0). Its upper bound doubles from `firstMs` to
 * `mostMs`, and the pause is between half and all of that, so that many clients that were refused
 * together do not retry together.
 */
export function backoffMs(attempt: number, rng: Rng, limits: BackoffLimits = {}): Millis {
  const { firstMs = 100, mostMs = 10_000 } = limits;
  const boundMs = Math.min(mostMs, firstMs * 2 ** attempt);
  return millis(Math.round(boundMs * (0.5 + rng() / 2)));
}

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
