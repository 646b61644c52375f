import { setTimeout as pause } from "node:timers/promises";

export interface WaitOptions {
  /** Completes "Cannot wait until …" if the time runs out. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The pause between two checks. */
  readonly intervalMs?: number;
}

/**
 * Checks repeatedly until the condition returns something other than undefined and false, and
 * returns that value. A condition that throws counts as not met; its last error is the cause of the
 * timeout.
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

/** Aborting ends the pause; the next check then throws the signal's own reason. */
async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (!signal?.aborted) throw error;
  });
}
