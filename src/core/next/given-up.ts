import { type Departure, isVoluntary } from "../departure/departure.ts";
import type { Policy } from "../policy/policy.ts";
import { type Millis, minutes } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { isAway } from "./scene.ts";

/** Before the drain there is nothing to lose: the node is planned again. */
const startFailingMs: Millis = minutes(1);

/**
 * How long requests of the current phase may fail before the departure is given up; undefined:
 * without a limit. Under a notice nothing is given up, and neither is a release or a roll-back,
 * which would leave the node cordoned.
 */
export function mostFailingMs(
  { cause, noticedAt, status }: Departure,
  { drain }: Policy,
): Millis | undefined {
  if (!isVoluntary(cause) || noticedAt !== undefined) return undefined;
  if (status.phase === "Preparing") return startFailingMs;
  return status.phase === "Draining" ? drain.timeoutMs : undefined;
}

/** No fault holds a node for ever, and none is known to the log alone. */
export function watched(found: StepFinding, evaluation: Evaluation): StepFinding {
  const { trouble, now, scene } = evaluation;
  const mostMs = mostFailingMs(evaluation.departure, scene.policy);
  if (found !== "Wait" || trouble === undefined || mostMs === undefined) return found;
  // Before the drain a start is planned again. A drain goes on when the API server is back.
  if (isAway(trouble.fault) && evaluation.status.phase === "Draining") return found;
  const endsMs = trouble.sinceMs + mostMs;
  if (now.ms < endsMs) {
    evaluation.lookAtMs(endsMs);
    return found;
  }
  return { event: "GaveUp", reason: "RequestRefused", detail: trouble.fault.message };
}
