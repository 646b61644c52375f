import type { Clock } from "../../contracts/clock.ts";
import type { KubeApi, KubeRequest } from "../../contracts/kube-api.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import { apiError } from "../../kube/object/api-error.ts";

/** An API server that is being restarted is back by then; a wrong address never is. */
const patienceMs = seconds(20);
const againMs = seconds(1);

interface Waiting {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onWait: (error: LastcallError, patienceMs: Millis) => void;
}

/**
 * Asks the API server who it is before a long run begins, so that a wrong address or token ends in
 * one sentence and exit code 1 instead of in a log that goes on for ever. Once it has answered, any
 * outage is waited out. Throws API_UNREACHABLE after 20 s, API_UNAUTHORIZED at once. `onWait` hears
 * of the first request without an answer, and for how long it will be asked again.
 */
export async function preflight(api: KubeApi, { clock, signal, onWait }: Waiting): Promise<void> {
  const request: KubeRequest = { method: "GET", path: "/version", signal };
  const giveUpMs = clock.monotonic() + patienceMs;
  let waits = false;
  for (;;) {
    try {
      const answer = await api.send(request);
      if (answer.status === 401) throw apiError(request, answer);
      return;
    } catch (error) {
      const passing = isLastcallError(error) && error.code === "API_UNREACHABLE";
      if (!passing || clock.monotonic() >= giveUpMs) throw error;
      if (!waits) onWait(error, patienceMs);
      waits = true;
    }
    await clock.sleep(againMs, signal);
  }
}
