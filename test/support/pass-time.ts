import type { ManualClock } from "./manual-clock.ts";

/**
 * Lets time pass on `clock` until `work` settles: whenever nothing is under way in real time
 * (`quiet`), the next sleeper is woken. Gives what the work gave.
 */
export async function passTime<T>(
  work: Promise<T>,
  world: { readonly clock: ManualClock; readonly quiet: () => boolean },
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
