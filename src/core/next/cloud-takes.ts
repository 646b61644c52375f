import { isNoticed, isVoluntary } from "../departure/departure.ts";
import { leftBehind } from "../departure/ledger.ts";
import {
  awaitedUntil,
  givenUpAt,
  interruptionOf,
  reactionTo,
  stillRuns,
} from "../notice/interruption.ts";
import type { Policy } from "../policy/policy.ts";
import { explain } from "../reason/reason.ts";
import { formatDuration, plus, seconds } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";

/**
 * Whether somebody else ends the machine: the policy leaves the release to others, or the cloud
 * takes the machine and the policy does not release it before, or could not. A departure that was
 * chosen stands after its notice: what the cloud has not taken is released.
 */
export function isCloudsToTake({ scene, status, departure: newest, now }: Evaluation): boolean {
  const { policy, departure } = scene;
  if (policy.instance.release === "None") return true;
  if (!isNoticed(departure)) return false;
  const untilAt = isVoluntary(departure.cause) ? givenUpAt(newest) : undefined;
  if (untilAt !== undefined && now.at >= untilAt) return false;
  const hasFailed = status.phase === "Releasing" && status.reason === "ReleaseFailed";
  return hasFailed || reactionTo(departure, policy) !== "Release";
}

/** How often a node is checked that is silent after its notice: it may have been restarted. */
const runsAgainMs = seconds(20);

/**
 * Waits until somebody else takes the machine, if it is not ours to release: the end of the node
 * interrupts the phase. If that does not happen, gives up at `givenUpAt` or `awaitedUntil`.
 */
export function takenByOthers(evaluation: Evaluation): StepFinding {
  if (!isCloudsToTake(evaluation)) return undefined;
  const { status, departure, scene, memory, now } = evaluation;
  // This reason must stay in the status: the next leader depends on it.
  if (status.reason !== "ReleaseFailed" && status.reason !== "AwaitingMachine") {
    const { node, deadlineAt } = departure;
    const left = leftBehind(status);
    const message = explain("AwaitingMachine", { node: node.name, deadlineAt, left });
    evaluation.intend({ ...status, reason: "AwaitingMachine", message });
  }
  const recordedAt = evaluation.isNoticed
    ? givenUpAt(departure)
    : awaitedUntil(departure, scene.policy);
  if (recordedAt === undefined) return "Wait";
  // The end of a notice is the cloud's, and nothing of it is counted here.
  const awaitedMs = memory.phase.ms + scene.policy.instance.awaitMachineMs;
  const untilAt = evaluation.isNoticed ? recordedAt : evaluation.endOfWait(recordedAt, awaitedMs);
  if (now.at < untilAt) {
    evaluation.look(untilAt);
    return "Wait";
  }
  if (!evaluation.isNoticed) {
    return { event: "GaveUp", reason: "MachineNotTaken", detail: notTaken(scene.policy) };
  }
  if (stillRuns(departure, scene.node)) return outlived(evaluation);
  evaluation.look(plus(now.at, runsAgainMs));
  return "Wait";
}

/**
 * The end of a departure whose machine the watch shows running after its notice. A watch may lag
 * for long, so that a read has to show it too, unless it is refused.
 */
function outlived(evaluation: Evaluation): StepFinding {
  const { departure, memory, now, scene } = evaluation;
  const asked = memory.outlived ?? { ms: now.ms, number: now.number };
  const read = evaluation.need("nodeNow", asked.number);
  const isRefused = evaluation.faultOf("nodeNow")?.retryable === false;
  if (read !== undefined || isRefused) {
    const node = read === undefined ? scene.node : read.node;
    if (stillRuns(departure, node)) return { event: "GaveUp", reason: "NoticeOutlived" };
    const found = interruptionOf(departure, node);
    if (found?.event === "NodeGone" || found?.event === "MachineReplaced") return found;
  }
  const againMs = asked.ms + runsAgainMs;
  // A read that takes long is awaited: a newer one would take as long.
  const isAgain = read !== undefined && now.ms >= againMs;
  const { ms, number } = isAgain ? now : asked;
  evaluation.remember({ outlived: { ms, number } });
  if (isAgain) evaluation.need("nodeNow", number);
  else if (now.ms < againMs) evaluation.lookAtMs(againMs);
  return "Wait";
}

function notTaken({ instance, name }: Policy): string {
  const waited = formatDuration(instance.awaitMachineMs);
  return `within ${waited}, and instance.release of policy ${name} is None: let another tool delete drained machines, or set another instance.release`;
}
