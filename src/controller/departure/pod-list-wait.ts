import type { Clock } from "../../contracts/clock.ts";
import type { FollowedPods } from "../../contracts/cluster.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";

const lookAgainMs: Millis = seconds(1);

interface ListWait {
  readonly clock: Clock;
  /** How long the API server may refuse to list the pods; undefined: without a limit. */
  readonly limitMs: () => Millis | undefined;
  readonly signal: AbortSignal;
}

/**
 * Resolves when the pods of a node have been listed. Rejects with the server's words if it refuses
 * that for longer than the limit. A server that does not answer at all refuses nothing.
 */
export async function untilListed(followed: FollowedPods, wait: ListWait): Promise<void> {
  const over = new AbortController();
  const refused = refusedForLong(followed, {
    ...wait,
    signal: AbortSignal.any([wait.signal, over.signal]),
  });
  // Once the race is decided, a rejection of the other promise would have no handler.
  refused.catch(() => undefined);
  try {
    await Promise.race([followed.synced(), refused]);
  } finally {
    over.abort();
  }
}

async function refusedForLong(
  followed: FollowedPods,
  { clock, limitMs, signal }: ListWait,
): Promise<never> {
  let sinceMs: number | undefined;
  for (;;) {
    await clock.sleep(lookAgainMs, signal);
    const refusal = followed.refusal();
    const nowMs = clock.monotonic();
    sinceMs = refusal === undefined ? undefined : (sinceMs ?? nowMs);
    const limit = limitMs();
    if (refusal === undefined || sinceMs === undefined || limit === undefined) continue;
    if (nowMs - sinceMs < limit) continue;
    throw new LastcallError("API_ANSWER_INVALID", refusal, { retryable: true });
  }
}
