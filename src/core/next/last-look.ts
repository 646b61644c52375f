import type { NodeFacts } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import { isNoticed } from "../departure/departure.ts";
import { type PhaseResult, wasDrained } from "../departure/ledger.ts";
import { withLeftBehind } from "../drain/drain-progress.ts";
import { planDrain } from "../drain-plan/drain-plan.ts";
import { machineLost, wholeIdentity } from "../notice/machine-lost.ts";
import { inEnglish } from "../reason/english.ts";
import { millis } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { inPresentTime } from "./pod-deadline.ts";
import type { LastLook } from "./scene.ts";
import { givenBack, isOurs } from "./without-record.ts";

/**
 * Before the request, a deleted Departure gives up the release. The phase Releasing has no event to
 * cancel it, because a requested release cannot be cancelled.
 */
export const deletedBefore: PhaseResult = {
  ...{ event: "GaveUp", reason: "CancelledByPerson" },
  detail: inEnglish({ says: "detail.DepartureDeleted" }),
};

/**
 * The last look, just before the request: a scheduler that chose the node before its cordon may
 * have bound a pod since, and a person may have deleted the Departure. Undefined: release it.
 */
export function lookedAt(
  { node, isLive, pods, shared }: LastLook,
  evaluation: Evaluation,
): StepFinding {
  const { memory, scene, now, status } = evaluation;
  if (!isLive) return keptBy(deletedBefore, evaluation);
  // Without the Node there are no pods, and the machine's id identifies it.
  if (node === undefined) return undefined;
  const identity = wholeIdentity(scene.departure.node, scene.node ?? node);
  const lost = machineLost(identity, node);
  if (lost !== undefined) return keptBy(lost, evaluation);
  // Before the request, a departure whose node is in use again gives the release up as well.
  if (!node.unschedulable && isOurs(evaluation))
    return keptBy({ event: "GaveUp", ...givenBack(node, evaluation) }, evaluation);
  // The request fails with that, instead of being sent.
  if (shared !== undefined) return undefined;
  const late = toLeave(inPresentTime(pods, { node, evaluation }), { node, evaluation });
  if (late.every((uid) => memory.drainedLate.includes(uid))) {
    evaluation.remember({ there: pods.map(({ uid }) => uid) });
    return undefined;
  }
  // Pods that an earlier drain left behind have had their time.
  const stayed = memory.drained?.staying ?? [];
  const known = new Set([...memory.drainedLate, ...stayed.map(({ uid }) => uid)]);
  // An earlier leader may have drained it.
  const isDrained = memory.drained !== undefined || wasDrained(status);
  const isLate = isDrained && late.some((uid) => !known.has(uid));
  evaluation.remember({
    ...{ late, target: node, drained: undefined, drain: undefined, emptyAt: undefined },
    ...{ lateSinceAt: isLate ? now.at : memory.lateSinceAt },
    phase: { ms: now.ms, number: now.number },
    tried: { activeMs: millis(0), seenMs: now.ms },
  });
  return "Wait";
}

function keptBy(found: PhaseResult, evaluation: Evaluation): PhaseResult {
  evaluation.remember({ kept: found });
  return found;
}

/** The uids of the pods that a drain would make leave. */
function toLeave(
  pods: readonly PodFacts[],
  { node, evaluation }: { readonly node: NodeFacts; readonly evaluation: Evaluation },
): readonly string[] {
  const { scene, now, memory } = evaluation;
  const { self, policy, departure } = scene;
  const beganWith = memory.beganWith && new Set(memory.beganWith);
  const plan = planDrain({
    ...{ node, pods, budgets: [], rule: policy.drain, now: now.at, self, beganWith },
    isNoticed: isNoticed(departure),
  });
  return plan.pods.map(({ uid }) => uid);
}

/** Names the pods that were bound after the last look and are lost with the machine. */
export function isLookedAfter(evaluation: Evaluation): boolean {
  const { memory, scene, status } = evaluation;
  const { there, releasedNumber: since } = memory;
  if (there === undefined || since === undefined) return true;
  const pods = evaluation.hope("podsNow", since);
  const read = evaluation.hope("nodeNow", since);
  const fault = evaluation.faultOf("podsNow") ?? evaluation.faultOf("nodeNow");
  if (fault !== undefined) {
    evaluation.says.push({ kind: "Faulted", event: "late-pods-not-looked-for", fault });
    evaluation.remember({ there: undefined });
    return true;
  }
  if (pods === undefined || read === undefined) return false;
  evaluation.remember({ there: undefined });
  const node = read.node ?? memory.target ?? scene.node;
  if (node === undefined) return true;
  const before = new Set(there);
  const late = toLeave(pods, { node, evaluation }).filter((uid) => !before.has(uid));
  // The group may already have recreated the machine, with new pods under the same name.
  const isOthers = read.node !== undefined && machineLost(scene.departure.node, read.node);
  if (late.length === 0 || isOthers) return true;
  const left = pods.filter(({ uid }) => late.includes(uid));
  evaluation.intend({ ...status, drain: withLeftBehind(memory.counts ?? status.drain, left) });
  evaluation.says.push({ kind: "LeftBehind" });
  return true;
}
