import type { Clock } from "../../src/contracts/clock.ts";
import { type Instant, instant, type Millis } from "../../src/core/time/time.ts";

interface Sleeper {
  readonly wakeAt: number;
  readonly wake: () => void;
}

/** A clock on which time passes only when told to, one sleeper at a time. */
export class SteppingClock implements Clock {
  #nowAt: number;
  readonly #bornAt: number;
  #sleepers: Sleeper[] = [];

  constructor(startAt: Instant) {
    this.#nowAt = startAt;
    this.#bornAt = startAt;
  }

  now(): Instant {
    return instant(this.#nowAt);
  }

  monotonic(): number {
    return this.#nowAt - this.#bornAt;
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal?.reason);
      };
      const wake = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const sleeper = { wakeAt: this.#nowAt + Math.max(0, span), wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Goes on to the next sleeper's instant and wakes that one; false when nobody sleeps. */
  step(): boolean {
    const next = this.#sleepers.reduce<Sleeper | undefined>(
      (first, other) => (first === undefined || other.wakeAt < first.wakeAt ? other : first),
      undefined,
    );
    if (next === undefined) return false;
    this.#sleepers = this.#sleepers.filter((other) => other !== next);
    this.#nowAt = Math.max(this.#nowAt, next.wakeAt);
    next.wake();
    return true;
  }
}

/**
 * Lets time pass on `clock` until `work` settles: whenever nothing is under way in real time
 * (`quiet`), the next sleeper is woken. Gives what the work gave.
 */
export async function passTime<T>(
  work: Promise<T>,
  world: { readonly clock: SteppingClock; readonly quiet: () => boolean },
): Promise<T> {
  let settled = false;
  const mark = () => {
    settled = true;
  };
  work.then(mark, mark);
  // A few turns of the event loop in a row, so that what follows an answer has begun.
  for (let quietTurns = 0; !settled; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quietTurns = world.quiet() ? quietTurns + 1 : 0;
    if (quietTurns < 3 || settled) continue;
    world.clock.step();
    quietTurns = 0;
  }
  return work;
}

/** Counts the requests of a fetch that are under way; the body belongs to the request. */
export function countingFetch(): { readonly fetch: typeof fetch; readonly inFlight: () => number } {
  let count = 0;
  async function counted(...args: Parameters<typeof fetch>): Promise<Response> {
    count++;
    try {
      const response = await fetch(...args);
      const body = await response.text();
      return new Response(body || null, { status: response.status, headers: response.headers });
    } finally {
      count--;
    }
  }
  return { fetch: counted, inFlight: () => count };
}
