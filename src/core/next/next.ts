import { type DepartureStatus, isLive, isPostponed, isUnderWay } from "../departure/departure.ts";
import { reactionTo } from "../notice/interruption.ts";
import type { Instant } from "../time/time.ts";
import {
  actionsBegun,
  actionsFinished,
  actionsUndone,
  lastActionsDone,
  requiredActionsDone,
} from "./action-steps.ts";
import { drained, loadBalancersLeft, volumesDetached } from "./after-drain-steps.ts";
import { capacityFreed, capacityReserved } from "./capacity-steps.ts";
import { allowed, identified, lookedAhead, releasable, started, turnTaken } from "./check-steps.ts";
import { takenByOthers } from "./cloud-takes.ts";
import { cordoned, uncordoned } from "./cordon-steps.ts";
import { emptied } from "./drain-steps.ts";
import {
  Evaluation,
  firstUnmet,
  runsAhead,
  type Said,
  type Step,
  type StepFinding,
} from "./evaluation.ts";
import { watched } from "./given-up.ts";
import { interrupted, startedByNotice, withEvidence } from "./interrupted.ts";
import type { Memory } from "./memory.ts";
import { bindingsOver, lateDrained, released } from "./release-steps.ts";
import type { DepartureRequest } from "./request.ts";
import type { DepartureScene, EvaluationTime, Need } from "./scene.ts";
import { keepUp } from "./upkeep.ts";
import { isUndoneWithoutRecord, recorded, stillCordoned } from "./without-record.ts";

/** What follows from a scene. */
export interface Next {
  /** As it should stand; the recorded one if nothing has to be written. */
  readonly status: DepartureStatus;
  /** What should be on its way. What is in flight is not sent again. */
  readonly requests: readonly DepartureRequest[];
  /** What has to be known: followed, or read again. */
  readonly needs: readonly Need[];
  /** When to look again if nothing changes; always later than now. */
  readonly lookAgainAt: Instant | undefined;
  readonly says: readonly Said[];
  readonly memory: Memory;
  /** Nothing more is to be done here: the departure has ended, is held, or is gone. */
  readonly isOver: boolean;
}

const drainSteps: readonly Step[] = [emptied, volumesDetached, loadBalancersLeft, drained];

/** The steps of each phase, in order. The first one that is not met decides what is missing. */
function stepsOf(evaluation: Evaluation): readonly Step[] {
  switch (evaluation.status.phase) {
    case "Preparing":
      return isToCordonAtOnce(evaluation)
        ? [actionsBegun, cordoned, prepared]
        : [
            ...[started, identified, lookedAhead, turnTaken, allowed, releasable, cordoned],
            ...[actionsBegun, capacityReserved, requiredActionsDone, prepared],
          ];
    case "Draining":
      return isOnlyCordoned(evaluation)
        ? [actionsBegun, takenByOthers]
        : [stillCordoned, actionsBegun, identified, ...drainSteps];
    case "Releasing":
      return [
        ...[stillCordoned, actionsBegun, capacityFreed, takenByOthers, lastActionsDone],
        ...[bindingsOver, lateDrained(drainSteps), released],
      ];
    case "RollingBack":
      return [capacityFreed, actionsUndone, uncordoned, recorded, rolledBack];
    default:
      return [begun];
  }
}

/**
 * A departure as a function: what should stand, what should be on its way, what has to be known,
 * and when to look again. Pure. Called again with the memory that it returned and the same facts,
 * it wants the same and nothing more.
 */
export function next(scene: DepartureScene, memory: Memory, now: EvaluationTime): Next {
  const evaluation = new Evaluation(scene, memory, now);
  callOff(evaluation);
  reopen(evaluation);
  // A phase may be over at once, such as the drain of an empty node.
  for (let phases = 0; phases < mostPhases; phases += 1) {
    const found = withEvidence(decide(evaluation), evaluation);
    if (found === undefined || found === "Wait") break;
    const { first } = evaluation.memory;
    const isFirst = first !== undefined && evaluation.memory.intended === undefined;
    if (evaluation.advance(found)) continue;
    if (!isFirst) break;
    // It concerns another phase, so the departure continues in its own.
    evaluation.remember({ first: undefined });
  }
  if (!scene.isDeleted) keepUp(evaluation);
  const { status, requests, needs, lookAgainAt, says } = evaluation;
  return {
    status,
    requests,
    needs,
    lookAgainAt,
    says,
    memory: evaluation.memory,
    isOver: isOver(evaluation),
  };
}

/** No course has as many phases without an answer from outside. */
const mostPhases = 8;

function decide(evaluation: Evaluation): StepFinding {
  const { scene } = evaluation;
  if (scene.isDeleted) return finished([actionsUndone, capacityFreed], evaluation);
  // Write-ahead: what a phase asks for is asked once the phase is in the cluster. Under a notice,
  // cordon and evictions do not wait for that, and a roll-back not for ever.
  const isAhead = evaluation.isPressing && runsAhead(evaluation.status);
  if (!evaluation.isRecorded && !isAhead && !isUndoneWithoutRecord(evaluation)) {
    evaluation.noteUnwritten();
    return noticedBefore(evaluation) ?? watched("Wait", evaluation);
  }
  if (!isLive(evaluation)) return finished([capacityFreed, actionsFinished], evaluation);
  const { first, intended } = evaluation.memory;
  if (first !== undefined && intended === undefined) return first;
  if (!isUnderWay(evaluation) && !evaluation.isNoticed)
    return finished([capacityFreed], evaluation);
  const found = interrupted(evaluation) ?? firstUnmet(stepsOf(evaluation), evaluation);
  return watched(found, evaluation);
}

/** What is left to do once nothing can interrupt the departure any more. */
function finished(steps: readonly Step[], evaluation: Evaluation): StepFinding {
  evaluation.isFinishing = firstUnmet(steps, evaluation) !== undefined;
  return undefined;
}

/**
 * The start was decided, and a person has postponed it before it could be written. Under a notice
 * it has been acted upon already, so that it is rolled back instead.
 */
function callOff(evaluation: Evaluation): void {
  const { scene, memory, now, isPressing } = evaluation;
  if (memory.first?.event !== "Due" || isUnderWay(scene.departure) || isPressing) return;
  if (isPostponed(scene.departure, now.at))
    evaluation.remember({ first: undefined, intended: undefined });
}

/** Nothing of a hold or a roll-back has been done before it is recorded: a notice comes first. */
function noticedBefore(evaluation: Evaluation): StepFinding {
  if (!evaluation.isPressing) return undefined;
  return isUnderWay(evaluation) ? startedByNotice(evaluation) : begun(evaluation);
}

/** The end of a roll-back that could not be written yet does not keep a notice from starting it. */
function reopen(evaluation: Evaluation): void {
  const { scene, memory, isPressing } = evaluation;
  const { intended } = memory;
  const isEnd = intended?.phase === "Ended" && scene.departure.status.phase === "RollingBack";
  if (!isEnd || !isPressing) return;
  evaluation.remember({ intended: undefined });
  if (startedByNotice(evaluation) === undefined) evaluation.remember({ intended });
}

/** A held departure that is noticed meanwhile starts all the same. */
function begun({ isNoticed }: Evaluation): StepFinding {
  return isNoticed ? { event: "Noticed", reason: "Noticed" } : "Wait";
}

/** Either every second counts, or the node keeps its pods: nothing is asked before the cordon. */
function isToCordonAtOnce({ isPressing, scene }: Evaluation): boolean {
  return isPressing || reactionTo(scene.departure, scene.policy) === "Cordon";
}

/** Whether the policy only cordons. A drain that has started continues, whatever the cause. */
function isOnlyCordoned({ scene, status, memory }: Evaluation): boolean {
  const hasBegun = (memory.counts ?? status.drain) !== undefined;
  return !hasBegun && reactionTo(scene.departure, scene.policy) === "Cordon";
}

function prepared({ memory }: Evaluation): StepFinding {
  return { event: "Prepared", ...(memory.missed ?? { reason: "DrainRunning" }) };
}

/** A roll-back ends with the reason that started it. */
function rolledBack({ status }: Evaluation): StepFinding {
  return { event: "RolledBack", reason: status.reason ?? "RolledBackByRule" };
}

function isOver(evaluation: Evaluation): boolean {
  if (evaluation.isFinishing) return false;
  if (evaluation.scene.isDeleted) return true;
  if (evaluation.scene.departure.status !== evaluation.status) return false;
  return (
    !isLive(evaluation) ||
    (!isUnderWay(evaluation) && evaluation.memory.first === undefined && !evaluation.isNoticed)
  );
}
