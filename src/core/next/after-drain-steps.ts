import { type AttachedVolume, awaitedVolumes } from "../cluster/pod.ts";
import { cloudDeadline } from "../departure/departure.ts";
import { drainBeganAt, type PhaseResult } from "../departure/ledger.ts";
import { earlier, formatInstant, type Instant, plus } from "../time/time.ts";
import { deregistered } from "./action-steps.ts";
import { isCloudsToTake } from "./cloud-takes.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import type { DrainEnd } from "./memory.ts";

/**
 * Waits until the volumes of the evicted pods are detached, so that their replacements do not have
 * to wait for a forced detach. Ends when time is up, or if attachments cannot be read.
 */
export function volumesDetached(evaluation: Evaluation): StepFinding {
  const { now } = evaluation;
  const end = endOf(evaluation);
  if (end.verdict !== "Done" || end.volumes === "None") return undefined;
  const attached = evaluation.hope("volumes");
  const fault = evaluation.faultOf("volumes");
  if (fault !== undefined)
    return withoutVolumes(() => {
      evaluation.says.push({ kind: "Faulted", event: "volumes-not-seen", fault });
    }, evaluation);
  const left = attached && awaitedVolumes(attached, end.staying);
  if (left?.length === 0) return undefined;
  const untilMs = (evaluation.memory.emptyMs ?? now.ms) + end.rule.timeoutMs;
  const untilAt = evaluation.endOfWait(volumesUntil(end, evaluation), untilMs);
  if (now.at >= untilAt)
    return withoutVolumes(() => {
      const detail = left === undefined ? "which ones is not known" : namesOf(left);
      evaluation.says.push({ kind: "VolumesLeft", detail });
    }, evaluation);
  if (left !== undefined) evaluation.report("VolumeWait", namesOf(left));
  evaluation.look(untilAt);
  return "Wait";
}

function withoutVolumes(say: () => void, evaluation: Evaluation): undefined {
  say();
  evaluation.remember({ drained: { ...endOf(evaluation), volumes: "None" } });
}

/**
 * The notice's deadline, otherwise the end of the drain's timeout. The timeout starts again if the
 * drain had no limit, or a job or long grace period has exceeded it.
 */
function volumesUntil({ rule }: DrainEnd, { memory, now, status, departure }: Evaluation): Instant {
  const emptyAt = memory.emptyAt ?? now.at;
  const beganAt = drainBeganAt(status) ?? emptyAt;
  const endedAt = plus(beganAt, rule.timeoutMs);
  const isOutlasted = rule.onTimeout === "Wait" || endedAt <= emptyAt;
  return cloudDeadline(departure) ?? (isOutlasted ? plus(emptyAt, rule.timeoutMs) : endedAt);
}

function namesOf(volumes: readonly AttachedVolume[]): string {
  const names = volumes.map(({ claim, volume, name }) => claim ?? volume ?? name).toSorted();
  const shown = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

/**
 * Waits for `loadBalancerDelay` before a machine is released, because load balancers still send
 * requests to the node until they have noticed its cordon. Counts from the start of the drain, as
 * recorded in the status, so that a restart does not extend it. A `deregisterTargets` action knows
 * when connections are drained, and is awaited instead.
 */
export function loadBalancersLeft(evaluation: Evaluation): StepFinding {
  const { now, scene, status, memory } = evaluation;
  if (isCloudsToTake(evaluation)) return undefined;
  if (deregistered(evaluation) === "Wait") return "Wait";
  const its = scene.actions.find(
    ({ kind, state }) => kind === "deregisterTargets" && state !== "Skipped",
  );
  if (its?.state === "Done") return undefined;
  const beganAt = drainBeganAt(status) ?? now.at;
  const { loadBalancerDelayMs } = scene.policy.instance;
  const waitedAt = plus(beganAt, loadBalancerDelayMs);
  const leftAt = earlier(cloudDeadline(evaluation.departure) ?? waitedAt, waitedAt);
  const untilAt = evaluation.endOfWait(leftAt, memory.phase.ms + loadBalancerDelayMs);
  if (now.at >= untilAt) return undefined;
  evaluation.report("LoadBalancerWait", formatInstant(untilAt));
  evaluation.look(untilAt);
  return "Wait";
}

/** Ends the phase Draining with the result of the drain. */
export function drained(evaluation: Evaluation): PhaseResult {
  const { verdict, account, detail } = endOf(evaluation);
  switch (verdict) {
    case "Done":
      return { event: "Drained", reason: "DrainDone", detail: account };
    case "DeadlineReached":
      return { event: "CutShort", reason: "DeadlineReached", detail };
    case "TimedOut":
    case "Proceeded":
      return { event: "CutShort", reason: "DrainTimeout", detail };
  }
}

function endOf({ memory }: Evaluation): DrainEnd {
  if (memory.drained === undefined) throw new Error("the steps after a drain follow its end");
  return memory.drained;
}
