import { osLabel } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import { hasReserved, reasonSince } from "../departure/ledger.ts";
import { nextReservationStep, type ReservationStep } from "../drain/placeholder-plan.ts";
import { planDrain } from "../drain-plan/drain-plan.ts";
import { type Instant, minus, plus } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { ownPods, trust } from "./pod-owner.ts";
import type { FactName } from "./scene.ts";

/**
 * Reserves capacity for the pods of the node, if the policy asks for it and there is time: one
 * placeholder for each, until all of them run or time is up. After a restart it continues from the
 * placeholders that exist.
 */
export function capacityReserved(evaluation: Evaluation): StepFinding {
  const { scene, memory, now } = evaluation;
  const { replacement } = scene.policy;
  const isOver = memory.missed !== undefined || memory.reserved;
  if (replacement.when === "None" || evaluation.isPressing || isOver) return undefined;
  if (reasonSince(evaluation.status, "ReplacementWait") === undefined)
    evaluation.report("ReplacementWait");
  const reservingMs = memory.reservingMs ?? now.ms;
  evaluation.remember({ reservingMs });
  const recordedAt = reasonSince(evaluation.status, "ReplacementWait") ?? now.at;
  const untilAt = plus(recordedAt, replacement.timeoutMs);
  const endsAt = evaluation.endOfWait(untilAt, reservingMs + replacement.timeoutMs);
  const sinceAt = minus(endsAt, replacement.timeoutMs);
  evaluation.look(endsAt);
  const step = stepOf(evaluation, sinceAt);
  if (step === "Unlisted")
    return now.at >= endsAt ? timedOut(refusalOf(evaluation), evaluation) : "Wait";
  if (step === "Refused") return timedOut(refusalOf(evaluation), evaluation);
  if (step.verdict === "Ready") {
    evaluation.remember({ reserved: true });
    return undefined;
  }
  const troubles = requested(step, evaluation);
  const detail = troubles === undefined ? step.detail : `${step.detail}; ${troubles}`;
  return step.verdict === "TimedOut" ? timedOut(detail, evaluation) : "Wait";
}

const lists = ["budgets", "placeholders", "placements"] as const satisfies readonly FactName[];

/** `Refused`: something that is read once cannot be read. */
function stepOf(
  evaluation: Evaluation,
  sinceAt: Instant,
): ReservationStep | "Unlisted" | "Refused" {
  const { scene, memory, now } = evaluation;
  const { target: node } = memory;
  const pods = evaluation.hope("pods");
  const budgets = evaluation.hope("budgets", memory.phase.number);
  const placeholders = evaluation.hope("placeholders");
  if (pods === undefined || budgets === undefined || placeholders === undefined) {
    return lists.some((name) => evaluation.faultOf(name) !== undefined) ? "Refused" : "Unlisted";
  }
  const placements = evaluation.hope("placements", memory.phase.number);
  if (placements === undefined) {
    return evaluation.faultOf("placements") === undefined ? "Unlisted" : "Refused";
  }
  if (node === undefined) return "Unlisted";
  if (!memory.isTrusted) trust(pods, evaluation);
  evaluation.remember({ isTrusted: true });
  // If the machine has been replaced, the drain detects that before it starts.
  const own = ownPods(pods, evaluation).pods.map((pod): PodFacts => {
    return { ...pod, placement: placements.get(pod.uid) ?? pod.placement };
  });
  const { policy, self, departure } = scene;
  const plan = planDrain({ node, pods: own, budgets, rule: policy.drain, now: now.at, self });
  return nextReservationStep({
    ...{ departure, plan, nodeOs: node.labels[osLabel], pods: own, placeholders },
    ...{ rule: policy.replacement, sinceAt, now: now.at },
  });
}

function refusalOf(evaluation: Evaluation): string {
  const faults = (["pods", ...lists] as const).map((name) => evaluation.faultOf(name));
  const found = faults.find((fault) => fault !== undefined);
  return found?.message ?? "the API server has not listed its pods";
}

/** Asks for what the step wants. Returns why the first of it was refused. */
function requested(
  { create, remove }: ReservationStep,
  evaluation: Evaluation,
): string | undefined {
  const keys = [...create.map(({ name }) => `reserve ${name}`), ...remove.map(freeKey)];
  for (const placeholder of create) {
    evaluation.attemptUntilSeen({
      kind: "Reserve",
      placeholder,
      key: `reserve ${placeholder.name}`,
    });
  }
  for (const name of remove)
    evaluation.attemptUntilSeen({ kind: "Unreserve", name, key: freeKey(name) });
  const { asked } = evaluation.memory;
  return keys.map((key) => asked[key]?.fault?.message).find((one) => one !== undefined);
}

function freeKey(name: string): string {
  return `free ${name}`;
}

function timedOut(detail: string, evaluation: Evaluation): StepFinding {
  const told = { reason: "ReplacementTimeout", detail } as const;
  evaluation.says.push({ kind: "ReservationTimedOut", detail });
  if (evaluation.scene.policy.replacement.onTimeout !== "Proceed")
    return { event: "GaveUp", ...told };
  evaluation.remember({ missed: told });
  return undefined;
}

/** How long the list of placeholders is waited for, which an API server may refuse for hours. */
const listedWithinMs = 10_000;

function isListAwaited(evaluation: Evaluation): boolean {
  if (evaluation.faultOf("placeholders") !== undefined) return false;
  const { memory, now } = evaluation;
  const freesSinceMs = memory.freesSinceMs ?? now.ms;
  evaluation.remember({ freesSinceMs });
  if (now.ms >= freesSinceMs + listedWithinMs) return false;
  evaluation.lookAtMs(freesSinceMs + listedWithinMs);
  return true;
}

/**
 * Removes the remaining placeholders after the drain. The plan reconciler sweeps those that fail.
 */
export function capacityFreed(evaluation: Evaluation): StepFinding {
  if (!hasReserved(evaluation.status)) return undefined;
  const all = evaluation.hope("placeholders");
  if (all === undefined) return isListAwaited(evaluation) ? "Wait" : undefined;
  const { uid } = evaluation.departure;
  const own = all.filter((one) => one.departureUid === uid && one.leaving === "Staying");
  const asked = own.map(({ name }) => {
    const key = freeKey(name);
    const isFreed = evaluation.attempt({ kind: "Unreserve", name, key }) !== undefined;
    return isFreed || evaluation.memory.asked[key]?.fault !== undefined;
  });
  return asked.every(Boolean) ? undefined : "Wait";
}
