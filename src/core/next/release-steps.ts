import type { PhaseEvent } from "../departure/ledger.ts";
import { bindingMs } from "../drain/drain-time.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import { releaseModeOf } from "../policy/release-answer.ts";
import type { Millis } from "../time/time.ts";
import { type Evaluation, firstUnmet, type Step, type StepFinding } from "./evaluation.ts";
import { deletedBefore, isLookedAfter, lookedAt } from "./last-look.ts";
import { machineRecorded } from "./machine-record.ts";
import { providerOf } from "./provider-id.ts";
import { triedMs } from "./release-clock.ts";
import { isLast, releaseFailed, releaseKey, retried } from "./release-fault.ts";
import { isAway } from "./scene.ts";

/**
 * Waits until the scheduler has seen the cordon. A node without pods is drained at once, and pods
 * bound after that have to leave by eviction, not with the machine.
 */
export function bindingsOver(evaluation: Evaluation): StepFinding {
  const { now } = evaluation;
  if (evaluation.memory.cordonedMs === undefined) evaluation.remember({ cordonedMs: now.ms });
  const untilMs = (evaluation.memory.cordonedMs ?? now.ms) + bindingMs;
  if (now.ms >= untilMs) return undefined;
  evaluation.lookAtMs(untilMs);
  return "Wait";
}

/** The ends of a drain after which the machine is released; it is kept after any other. */
const releasedAfter: ReadonlySet<PhaseEvent> = new Set(["Drained", "CutShort", "NodeGone"]);

/** Drains the pods that the last look has found, by the steps of any drain. */
export function lateDrained(drainSteps: readonly Step[]): Step {
  return (evaluation) => {
    const { late, drainedLate } = evaluation.memory;
    if (late === undefined) return undefined;
    const found = firstUnmet(drainSteps, evaluation);
    if (found === undefined || found === "Wait") return "Wait";
    if (found.event === "Cancelled") return deletedBefore;
    if (!releasedAfter.has(found.event)) return found;
    evaluation.remember({ late: undefined, drainedLate: [...drainedLate, ...late] });
    return undefined;
  };
}

/** The mode recorded before the first request takes precedence: the Node may be gone. */
function modeOf({ scene, status }: Evaluation): ReleaseMode {
  const { policy, node } = scene;
  if (policy.instance.release === "None") return "None";
  return status.machine?.mode ?? releaseModeOf({ labels: node?.labels ?? {} }, policy.instance);
}

/**
 * Releases the machine, then deletes its Node object, always in this order. The machine's id is in
 * the cluster before the first request and never replaced: a retry, even after a crash, thereby
 * distinguishes the machine from one that was recreated under its name.
 */
export function released(evaluation: Evaluation): StepFinding {
  const mode = modeOf(evaluation);
  if (mode === "None") return "Wait";
  if (evaluation.memory.kept !== undefined) return evaluation.memory.kept;
  const ms = triedMs(evaluation);
  const isGone = evaluation.memory.releasedNumber !== undefined;
  const found = isGone ? undefined : machineGone(mode, evaluation);
  if (found !== undefined) return found;
  if (!isLookedAfter(evaluation)) return "Wait";
  return nodeRemoved(ms, evaluation);
}

/**
 * Deletes the Node of a machine that is gone. If that is refused for long, also if the leader
 * changes, the Node is left to others: its marks are removed, since a new machine may take it over.
 */
function nodeRemoved(tried: Millis, evaluation: Evaluation): StepFinding {
  const { memory, scene, now } = evaluation;
  const key = "remove node";
  const isAnswered = evaluation.ask({ kind: "RemoveNode", key }) !== undefined;
  const { fault, isInFlight, sinceMs = now.ms } = memory.asked[key] ?? {};
  // The answer was lost, or somebody else has deleted it.
  const isGone = fault !== undefined && scene.node?.uid !== scene.departure.node.uid;
  if (isAnswered || isGone) return { event: "Released", reason: "Released" };
  if (fault === undefined) return "Wait";
  const { awaitMachineMs } = scene.policy.instance;
  const endsMs = Math.min(sinceMs + awaitMachineMs, now.ms + 2 * awaitMachineMs - tried);
  if (now.ms >= endsMs && !isInFlight && !isAway(fault)) {
    return { event: "Released", reason: "Released", detail: fault.message };
  }
  retried(fault, evaluation);
  if (now.ms < endsMs) evaluation.lookAtMs(endsMs);
  return "Wait";
}

function machineGone(mode: Exclude<ReleaseMode, "None">, evaluation: Evaluation): StepFinding {
  const { scene, status, now } = evaluation;
  if (status.machine === undefined) {
    const known = machineRecorded(mode, evaluation);
    if (known !== "Known") return known;
  }
  const { machine } = scene.departure.status;
  // Not written yet.
  if (machine === undefined) {
    evaluation.noteUnwritten();
    return "Wait";
  }
  // An earlier leader may have sent its request just before.
  if (evaluation.memory.unansweredMs === undefined && isInherited(evaluation)) {
    evaluation.remember({ unansweredMs: evaluation.memory.phase.ms });
  }
  const key = releaseKey(machine.id);
  const providerID = providerOf(evaluation) ?? "";
  if (scene.lastLook !== undefined) {
    const kept = lookedAt(scene.lastLook, evaluation);
    if (kept !== undefined) return kept;
  }
  const asked = evaluation.memory.asked[key];
  const fault = asked?.isInFlight === false ? asked.fault : undefined;
  if (fault !== undefined && isLast(fault, evaluation)) return releaseFailed(fault, evaluation);
  // A node that was kept is looked at again: its late pods have been drained.
  if (asked?.answer?.kind === "Kept") evaluation.forget(key);
  const how = { mode: machine.mode ?? mode, machineId: machine.id, providerID };
  const answer = evaluation.ask({ kind: "Release", ...how, key, stops: true });
  if (answer === undefined) return fault === undefined ? "Wait" : releaseFailed(fault, evaluation);
  evaluation.remember({ releasedNumber: now.number });
  return undefined;
}

/** Whether the machine was recorded before this process entered the phase. */
function isInherited({ scene, memory }: Evaluation): boolean {
  const { machine } = scene.departure.status;
  return machine !== undefined && memory.described === undefined;
}
