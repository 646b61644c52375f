import type { NodeFacts } from "../cluster/node.ts";
import { isVoluntary } from "../departure/departure.ts";
import type { PhaseResult } from "../departure/ledger.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import { machineLost } from "../notice/machine-lost.ts";
import { inEnglish } from "../reason/english.ts";
import { minutes } from "../time/time.ts";
import { isCloudsToTake } from "./cloud-takes.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { isAway } from "./scene.ts";

/** How long the record of a roll-back may be refused before the node is given back without it. */
export const recordedWithinMs = minutes(1);

/**
 * Whether a roll-back is carried out although it is not recorded. A status may be refused for ever,
 * and the node would stay cordoned for as long; a leader that comes meanwhile sees at the node that
 * it was given back. An API server that is away refuses nothing.
 */
export function isUndoneWithoutRecord(evaluation: Evaluation): boolean {
  const { scene, status, memory, now } = evaluation;
  if (status.phase !== "RollingBack") return false;
  if (memory.isUndoneWithoutRecord) return true;
  if (scene.unwritten === undefined || isAway(scene.unwritten.fault)) return false;
  const endsMs = scene.unwritten.sinceMs + recordedWithinMs;
  if (now.ms >= endsMs) evaluation.remember({ isUndoneWithoutRecord: true });
  else evaluation.lookAtMs(endsMs);
  return now.ms >= endsMs;
}

/** The roll-back itself ends once it is recorded. */
export function recorded({ isRecorded }: Evaluation): StepFinding {
  return isRecorded ? undefined : "Wait";
}

/**
 * Who has given a node back, which a read shows as open: a person's uncordon leaves our annotation
 * in place, and ours removes it.
 */
export function givenBack(
  { annotations }: NodeFacts,
  { departure }: Pick<Evaluation, "departure">,
): Pick<PhaseResult, "reason" | "detail"> {
  return annotations[departureAnnotation] === departure.name
    ? { reason: "CancelledByPerson", detail: inEnglish({ says: "detail.NodeUncordoned" }) }
    : { reason: "RolledBackByRule", detail: inEnglish({ says: "detail.Unrecorded" }) };
}

/**
 * For a process that has not cordoned the node: whether it still is. A person, or an earlier leader
 * that could not record its roll-back, may have given it back. What the watch shows may be older
 * than the cordon, so that the node is read. Once a machine is recorded, the last look does this.
 */
export function stillCordoned(evaluation: Evaluation): StepFinding {
  const { memory, status } = evaluation;
  const isKnown = memory.cordonedMs !== undefined || memory.isSeenCordoned;
  if (isKnown || !isOurs(evaluation) || status.machine !== undefined) return undefined;
  // Nothing is done to the node then.
  if (status.phase === "Releasing" && isCloudsToTake(evaluation)) return undefined;
  const read = evaluation.need("nodeNow", memory.phase.number);
  if (read === undefined) return "Wait";
  const isThere = machineLost(evaluation.scene.departure.node, read.node) === undefined;
  if (isThere && read.node?.unschedulable === false) {
    const given = givenBack(read.node, evaluation);
    return { event: given.reason === "CancelledByPerson" ? "Cancelled" : "GaveUp", ...given };
  }
  evaluation.remember({ isSeenCordoned: true });
  return undefined;
}

/** Whether nobody but us wants the node to leave, so that its cordon is the departure's own. */
export function isOurs({ scene, isNoticed }: Evaluation): boolean {
  return isVoluntary(scene.departure.cause) && !isNoticed;
}
