import type { MachineState } from "../cluster/machine.ts";
import { compareIdentity } from "../cluster/node.ts";
import { formatDuration, hours, type Millis } from "../time/time.ts";
import { takenByOthers } from "./cloud-takes.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { machineAbsent, stillReports } from "./machine-absent.ts";
import { triedMs } from "./release-clock.ts";
import type { AskedRequest } from "./request.ts";
import { isAway, type RequestFault } from "./scene.ts";

export function releaseKey(id: string): string {
  return `release ${id}`;
}

/** Reports once why something is tried again, which may go on for a while. */
export function retried({ message }: RequestFault, evaluation: Evaluation): void {
  if (evaluation.status.reason !== "ReleaseRetried") evaluation.report("ReleaseRetried", message);
}

/**
 * Whether the release has been tried for long enough, whoever refuses it: the cloud, or the API
 * server at the last look at the pods. If the machine is leaving by then, it is tried on. An API
 * server that is away refuses nothing.
 */
export function isLast(fault: RequestFault, evaluation: Evaluation): boolean {
  if (!fault.retryable) return true;
  return fault.code !== "MACHINE_LEAVING" && !isAway(fault) && leftMs(evaluation) <= 0;
}

function leftMs(evaluation: Evaluation): number {
  return evaluation.scene.policy.instance.awaitMachineMs - triedMs(evaluation);
}

/** A cloud shows within this time that it has accepted a request. */
const visibleWithinMs = 60_000;

/**
 * After a fault the release is tried again, for as long as the policy says. Then the node is given
 * back, but only if a lookup shows that its machine stays: a request without a response, or of an
 * earlier leader, may have succeeded, and a terminating machine does not come back. An early lookup
 * is repeated, since it may not show that yet.
 */
export function releaseFailed(fault: RequestFault, evaluation: Evaluation): StepFinding {
  const { now, scene } = evaluation;
  noteFault(fault, evaluation);
  if (!isLast(fault, evaluation)) {
    retried(fault, evaluation);
    const restMs = leftMs(evaluation);
    if (restMs > 0) evaluation.lookAtMs(now.ms + restMs);
    return "Wait";
  }
  if (evaluation.isNoticed) return unreleased(fault, evaluation);
  const { machine } = scene.departure.status;
  const asked = machine && evaluation.memory.asked[releaseKey(machine.id)];
  if (machine === undefined || asked?.answeredNumber === undefined)
    return unreleased(fault, evaluation);
  const seen = seenAfter(asked, evaluation);
  if (seen === undefined) return "Wait";
  if (seen === "Unknown") return unseen(fault, asked, evaluation);
  const isSame = seen.kind === "Present" && seen.id === machine.id;
  if (!isSame) {
    // A request without an answer has ended it, whatever the cloud answers to the next one.
    const absent = machineAbsent(seen, evaluation);
    if (absent === undefined || absent === "Wait") return absent;
  }
  if (isSame && seen.running && evaluation.memory.wasUnseen === true) {
    // The cloud answers again.
    evaluation.remember({ wasUnseen: undefined });
    return triedOn(fault, asked, evaluation);
  }
  if (isSame && seen.running) {
    const visibleMs = visibleFromMs(evaluation);
    if (now.ms >= visibleMs) return unreleased(fault, evaluation);
    evaluation.lookAtMs(visibleMs);
    return "Wait";
  }
  return triedOn(fault, asked, evaluation);
}

/** The machine may be leaving, so that its release is asked for again. */
function triedOn(fault: RequestFault, asked: AskedRequest, evaluation: Evaluation): "Wait" {
  const { memory, now, scene } = evaluation;
  const key = releaseKey(scene.departure.status.machine?.id ?? "");
  const leaving: RequestFault = { ...fault, code: "MACHINE_LEAVING", retryable: true };
  evaluation.remember({ asked: { ...memory.asked, [key]: { ...asked, fault: leaving } } });
  retried(fault, evaluation);
  evaluation.lookAtMs(Math.max(asked.againMs ?? 0, now.ms + 1));
  return "Wait";
}

/** No cloud begins later to stop a machine for a request that it has accepted. */
const stopsWithinMs: Millis = hours(1);

/**
 * The cloud cannot be asked what became of the machine, and is asked for nothing meanwhile. The
 * node is given back if its kubelet still
 * reports long after a request that was refused, and much longer after one without an answer, which
 * may have been accepted.
 */
function unseen(fault: RequestFault, asked: AskedRequest, evaluation: Evaluation): StepFinding {
  const { now, scene, memory } = evaluation;
  const refusedMs = (asked.answeredMs ?? now.ms) + scene.policy.instance.awaitMachineMs;
  const acceptedMs = (memory.unansweredMs ?? Number.NEGATIVE_INFINITY) + stopsWithinMs;
  const stoppedMs = Math.max(refusedMs, acceptedMs);
  if (now.ms < stoppedMs) {
    evaluation.remember({ wasUnseen: true });
    retried(fault, evaluation);
    evaluation.lookAtMs(stoppedMs);
    return "Wait";
  }
  const reports = stillReports(evaluation);
  if (reports === "Wait" && evaluation.faultOf("nodeNow") === undefined) return "Wait";
  const { node } = evaluation.hope("nodeNow") ?? {};
  // No Node waits for a machine that is gone, or has another one's name.
  const isThere = node !== undefined && compareIdentity(evaluation.departure.node, node) === "Same";
  const mayLeave = reports === "Silent" && isThere;
  return mayLeave ? triedOn(fault, asked, evaluation) : unreleased(fault, evaluation);
}

/** When the cloud must show what became of the last request without an answer (monotonic). */
function visibleFromMs({ memory }: Evaluation): number {
  return (memory.unansweredMs ?? Number.NEGATIVE_INFINITY) + visibleWithinMs;
}

/** What the cloud shows of the machine after an attempt, once it must be visible there. */
function seenAfter(
  asked: AskedRequest,
  evaluation: Evaluation,
): MachineState | "Unknown" | undefined {
  const { now, memory } = evaluation;
  if (memory.visible === undefined && now.ms >= visibleFromMs(evaluation)) {
    evaluation.remember({ visible: now.number });
  }
  const since = Math.max(asked.answeredNumber ?? 0, evaluation.memory.visible ?? 0);
  const state = evaluation.hope("machine", since);
  if (state !== undefined) return state;
  return evaluation.faultOf("machine") === undefined ? undefined : "Unknown";
}

/** When something got no answer. */
function noteFault({ code }: RequestFault, evaluation: Evaluation): void {
  const { memory } = evaluation;
  const { machine } = evaluation.scene.departure.status;
  const asked = machine && memory.asked[releaseKey(machine.id)];
  if (code === "CLOUD_UNREACHABLE" && asked?.answeredMs !== undefined) {
    evaluation.remember({ unansweredMs: latest(memory.unansweredMs, asked.answeredMs) });
  }
}

function latest(one: number | undefined, other: number): number {
  return one === undefined ? other : Math.max(one, other);
}

/** Handles a failed release. A node that the cloud takes stays cordoned, and we wait for that. */
function unreleased(fault: RequestFault, evaluation: Evaluation): StepFinding {
  const forLong = formatDuration(evaluation.scene.policy.instance.awaitMachineMs);
  const tried = `, retried for ${forLong} (instance.awaitMachine)`;
  const detail = `${fault.message}${fault.retryable ? tried : ""}`;
  evaluation.says.push({ kind: "Faulted", event: "release-failed", fault });
  if (!evaluation.isNoticed) return { event: "GaveUp", reason: "ReleaseFailed", detail };
  evaluation.report("ReleaseFailed", detail);
  return takenByOthers(evaluation);
}
