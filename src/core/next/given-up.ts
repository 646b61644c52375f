import { type Departure, isVoluntary } from "../departure/departure.ts";
import type { Policy } from "../policy/policy.ts";
import { type Millis, minutes } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { isAway } from "./scene.ts";
import { recordedWithinMs } from "./without-record.ts";

/** Before the drain there is nothing to lose: the node is planned again. */
const startFailingMs: Millis = minutes(1);

/**
 * How long requests of the current phase may fail before the departure is given up; undefined:
 * without a limit. Under a notice nothing is given up, and neither is a roll-back, nor a release
 * that may have been requested: that has a limit of its own.
 */
export function mostFailingMs(
  { cause, noticedAt, status }: Departure,
  { drain, instance }: Policy,
): Millis | undefined {
  if (!isVoluntary(cause) || noticedAt !== undefined) return undefined;
  switch (status.phase) {
    case "Preparing":
      return startFailingMs;
    case "Draining":
      return drain.timeoutMs;
    case "Releasing":
      return status.machine === undefined ? instance.awaitMachineMs : undefined;
    default:
      return undefined;
  }
}

/**
 * How long a write that something waits for is tried; undefined: without a limit. A roll-back goes
 * on without it.
 */
export function longestWriteMs(departure: Departure, policy: Policy): Millis | undefined {
  const isUndone = departure.status.phase === "RollingBack";
  return isUndone ? recordedWithinMs : mostFailingMs(departure, policy);
}

/** No fault holds a node for ever, and none is known to the log alone. */
export function watched(found: StepFinding, evaluation: Evaluation): StepFinding {
  const { trouble, now, scene, status, memory } = evaluation;
  // Nothing has been requested of a machine that is not recorded, or of one whose last look has
  // found pods that have to leave first.
  const isKept = memory.late !== undefined && memory.unansweredMs === undefined;
  const machine = isKept ? undefined : scene.departure.status.machine;
  const mostMs = mostFailingMs(
    { ...scene.departure, status: { ...status, machine } },
    scene.policy,
  );
  if (found !== "Wait" || trouble === undefined || mostMs === undefined) return found;
  // A start is planned again. Anything else goes on when the API server is back.
  if (isAway(trouble.fault) && status.phase !== "Preparing") return found;
  const endsMs = trouble.sinceMs + mostMs;
  if (now.ms < endsMs) {
    evaluation.lookAtMs(endsMs);
    return found;
  }
  return { event: "GaveUp", reason: "RequestRefused", detail: trouble.fault.message };
}
