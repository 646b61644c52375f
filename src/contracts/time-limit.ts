import type { Millis } from "../core/time/time.ts";
import type { Clock } from "./clock.ts";

export interface TimeLimit {
  readonly clock: Pick<Clock, "sleep">;
  readonly limitMs: Millis;
  /** The error of work that has not ended in time. */
  readonly late: () => Error;
}

/**
 * Does work within a time limit. Rejects with the error `late` when the limit is over, and with the
 * signal's reason when that aborts, even if the work ignores its own signal, which aborts in either
 * case, and once the work is done: nothing that it began continues.
 */
export async function withinTime<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { clock, limitMs, late }: TimeLimit,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const own = new AbortController();
  const stop = (): void => own.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    // The race listens before the work does: the reason of the abort wins.
    const { promise: ended, reject } = Promise.withResolvers<never>();
    own.signal.addEventListener("abort", () => reject(own.signal.reason), { once: true });
    clock.sleep(limitMs, own.signal).then(
      () => own.abort(late()),
      () => undefined,
    );
    return await Promise.race([ended, work(own.signal)]);
  } finally {
    signal?.removeEventListener("abort", stop);
    own.abort();
  }
}

/** Waits for work that others wait for as well: the signal ends the wait, not the work. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  // After the race, nothing would handle a rejection of the work.
  work.catch(() => undefined);
  try {
    return await Promise.race([promise, work]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
