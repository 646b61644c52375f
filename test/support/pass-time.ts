import type { ManualClock } from "./manual-clock.ts";

/**
 * Lets time pass on `clock` until `work` settles: whenever nothing is in progress in real time
 * (`quiet`), wakes the next sleeper. Returns the result of the work.
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
  // Waits for a few turns of the event loop in a row, so that whatever follows a response has
  // started.
  for (let quietTurns = 0; !settled; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quietTurns = world.quiet() ? quietTurns + 1 : 0;
    if (quietTurns < 3 || settled) continue;
    world.clock.step();
    quietTurns = 0;
  }
  return work;
}

/** Counts the requests of a fetch that are in flight, including their bodies. */
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
