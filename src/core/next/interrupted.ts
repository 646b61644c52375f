import { statusNoticed } from "../departure/ledger.ts";
import { type Interruption, interruptionOf } from "../notice/interruption.ts";
import { inTheLightOf, isInDoubt } from "../notice/machine-evidence.ts";
import { isCloudsToTake } from "./cloud-takes.ts";
import { recounted } from "./drain-steps.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { providerOf } from "./provider-id.ts";
import { releaseKey } from "./release-fault.ts";

/**
 * What ends the phase before its steps do. That a node is gone or has another machine is confirmed
 * by a read first, because a watch may lag behind.
 */
export function interrupted(evaluation: Evaluation): StepFinding {
  const { scene, memory } = evaluation;
  const found = interruptionOf(evaluation.departure, scene.node);
  if (found === undefined || !concerns(found, evaluation)) {
    if (memory.lost !== undefined) evaluation.remember({ lost: undefined });
    return undefined;
  }
  if (found.event === "Noticed") return isNews(evaluation) ? found : undefined;
  if (found.event !== "NodeGone" && found.event !== "MachineReplaced") return found;
  if (isRolledBackFor(found, evaluation)) return undefined;
  return unlessItGoesOn(withEvidence(confirmed(found, evaluation), evaluation), evaluation);
}

/**
 * A release goes on, and a roll-back, where nobody knows whether the machine is gone with its Node;
 * a roll-back also if it runs. Each ends as it would have, by its own limits.
 */
function unlessItGoesOn(found: StepFinding, { status }: Evaluation): StepFinding {
  if (found === undefined || found === "Wait" || found.event !== "Cancelled") return found;
  const isKnown = found.reason === "CancelledByPerson";
  const isUndone = status.phase === "RollingBack";
  return isUndone || (status.phase === "Releasing" && !isKnown) ? undefined : found;
}

/** Whether the roll-back is what this loss has led to: it then ends with its own reason. */
function isRolledBackFor({ event }: Interruption, { memory, status }: Evaluation): boolean {
  const { lost, phase } = memory;
  return status.phase === "RollingBack" && lost?.event === event && lost.number < phase.number;
}

/** A loss that a read has denied is asked again after this: the watch may miss a real one. */
const deniedForMs = 20_000;

function confirmed(found: Interruption, evaluation: Evaluation): StepFinding {
  const { event } = found;
  const { ms, number } = evaluation.now;
  const before = evaluation.memory.lost?.event === event ? evaluation.memory.lost : undefined;
  const isOld = before?.isDenied === true && ms >= before.ms + deniedForMs;
  const lost = before === undefined || isOld ? { ...before, event, ms, number } : before;
  evaluation.remember({ lost });
  const read = evaluation.need("nodeNow", lost.number);
  const isLost = read && interruptionOf(evaluation.departure, read.node)?.event === event;
  if (isLost) return recounted(evaluation, lost.number) ? found : "Wait";
  if (read !== undefined) evaluation.remember({ lost: { ...lost, isDenied: true } });
  if (evaluation.memory.lost?.isDenied !== true) return isAwaited(evaluation) ? "Wait" : undefined;
  evaluation.lookAtMs(lost.ms + deniedForMs);
  return undefined;
}

/**
 * Whether the phase stands still until the read: pods are evicted only from the departing machine.
 * The requests of other phases look at the Node themselves, and go on if the read fails.
 */
function isAwaited(evaluation: Evaluation): boolean {
  return evaluation.status.phase === "Draining" || evaluation.faultOf("nodeNow") === undefined;
}

/** A notice that starts a departure which waits, or is being rolled back, from the beginning. */
export function startedByNotice(evaluation: Evaluation): StepFinding {
  const found = interruptionOf(evaluation.departure, evaluation.scene.node);
  return found?.event === "Noticed" && isNews(evaluation) ? found : undefined;
}

/** Whether the timeline does not know the notice: one that was rolled back does not count. */
function isNews({ departure, status, now }: Evaluation): boolean {
  if (status.phase !== "RollingBack") return true;
  return statusNoticed(departure, now.at) !== undefined;
}

/**
 * Whether an interruption concerns the phase. Before the cordon of a notice, the patch itself tests
 * the machine, and nothing waits for a read. While we release the machine, its node is expected to
 * disappear. While we wait for the cloud, a node that disappears, or has another machine, ends the
 * wait; and so it does while our release is retried, since a release whose answers are lost may
 * have been done, and if nothing else identifies the machine, which then cannot be released.
 */
function concerns(found: Interruption, evaluation: Evaluation): boolean {
  const { machine, reason, phase } = evaluation.status;
  const isGone = found.event === "NodeGone" || found.event === "MachineReplaced";
  const isCordoned = evaluation.memory.cordonedMs !== undefined;
  if (phase === "Preparing" && evaluation.isPressing && !isCordoned) return !isGone;
  if (phase !== "Releasing") return true;
  const isRetried = machine && evaluation.memory.asked[releaseKey(machine.id)]?.fault !== undefined;
  const isOurs = evaluation.memory.releasedNumber !== undefined;
  const isWaiting = isRetried || reason === "ReleaseRetried" || !providerOf(evaluation);
  if (isGone && !isOurs && isWaiting) return true;
  if (!isCloudsToTake(evaluation)) return false;
  const isReleasedByUs = machine !== undefined && reason !== "ReleaseFailed";
  const isUndone = found.event === "Withdrawn" || found.event === "Cancelled";
  return !isUndone || !isReleasedByUs;
}

/** A cloud that does not respond within this time says nothing. */
const answerWithinMs = 5000;

/** What ended a departure, as far as there is evidence: the cloud is asked first. */
export function withEvidence(found: StepFinding, evaluation: Evaluation): StepFinding {
  if (found === undefined || found === "Wait") return found;
  const { now } = evaluation;
  const node = { ...evaluation.departure.node, providerID: providerOf(evaluation) };
  const departure = { ...evaluation.departure, node };
  if (!isInDoubt(found, departure)) return found;
  const { ms, number } = now;
  if (evaluation.memory.evidence === undefined) evaluation.remember({ evidence: { ms, number } });
  const since = evaluation.memory.evidence ?? now;
  const answer = evaluation.hope("machineBehind", since.number);
  const untilMs = since.ms + answerWithinMs;
  const isOver = evaluation.faultOf("machineBehind")?.retryable === false || ms >= untilMs;
  if (answer === undefined && !isOver) {
    evaluation.lookAtMs(untilMs);
    return "Wait";
  }
  return inTheLightOf(answer ?? "Silent", found, { departure, now: now.at });
}
