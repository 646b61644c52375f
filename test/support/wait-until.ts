import { setTimeout as pause } from "node:timers/promises";

export interface WaitOptions {
  /** Completes "Cannot wait until …" when the time is over. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** How long to rest between two looks. */
  readonly intervalMs?: number;
}

/**
 * Looks until the condition gives a value other than undefined and false, and returns that value.
 * A condition that throws counts as not met; what it last threw is the cause of the time-out.
 */
export async function waitUntil<T>(
  condition: () => Promise<T | false | undefined>,
  { what, timeoutMs, signal, intervalMs = 50 }: WaitOptions,
): Promise<T> {
  const deadlineAt = performance.now() + timeoutMs;
  let cause: unknown;
  while (performance.now() < deadlineAt) {
    signal?.throwIfAborted();
    try {
      const value = await condition();
      if (value !== false && value !== undefined) return value;
    } catch (error) {
      cause = error;
    }
    await rest(intervalMs, signal);
  }
  throw new Error(`Cannot wait until ${what}: not so after ${timeoutMs} ms`, { cause });
}

/** An abort ends the rest, and the next look then throws the signal's own reason. */
async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
}
