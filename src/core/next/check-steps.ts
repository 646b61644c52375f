import {
  conflictHold,
  conflictWith,
  contestable,
  type DrainReason,
} from "../departure/drain-reason.ts";
import { begunLastAt, type PhaseResult, reasonSince } from "../departure/ledger.ts";
import { planDrain } from "../drain-plan/drain-plan.ts";
import { isSameJson } from "../json/json-field.ts";
import { asksOutside, holdsSinceStart, othersGate } from "../limits/gate.ts";
import type { NodesOut } from "../limits/nodes-out.ts";
import { departureAnnotation } from "../notice/interruption.ts";
import { machineLost } from "../notice/machine-lost.ts";
import { isFirm } from "../plan/start.ts";
import type { Policy } from "../policy/policy.ts";
import { type Millis, millis, minutes, plus, seconds } from "../time/time.ts";
import { actionsSuspended } from "./action-steps.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import type { Memory } from "./memory.ts";
import type { RequestFault } from "./scene.ts";

/**
 * How long the identity check of the cordon is valid under a notice, so that the node is not read
 * again.
 */
const identityValidMs = 5000;

/** Whether the node is still the intended machine, by a read of the API server once a phase. */
export function identified(evaluation: Evaluation): StepFinding {
  const { memory, scene, now, status } = evaluation;
  if (memory.identifiedIn === status.phase && memory.target !== undefined) return undefined;
  const sinceMs = now.ms - (memory.cordonedMs ?? Number.NEGATIVE_INFINITY);
  if (evaluation.isNoticed && sinceMs <= identityValidMs && scene.node !== undefined) {
    evaluation.remember({ target: scene.node, identifiedIn: status.phase });
    return undefined;
  }
  const read = evaluation.need("nodeNow", memory.phase.number);
  if (read === undefined) return "Wait";
  const lost = machineLost(scene.departure.node, read.node);
  if (lost !== undefined) return lost;
  evaluation.remember({ target: read.node, identifiedIn: status.phase });
  return undefined;
}

/** Reasons that a replacement pod cannot resolve. */
const permanentReasons: ReadonlySet<DrainReason> = new Set([
  "BudgetImpossible",
  "MultipleBudgets",
  "SingleReplica",
]);

/**
 * The drain as it would be if it started now: reports pods that will block it until its timeout,
 * and those that fit on no other node. Faults do not delay the departure.
 */
export function lookedAhead(evaluation: Evaluation): StepFinding {
  const { memory, scene, now } = evaluation;
  if (isPastChecks(evaluation) || evaluation.isPressing || memory.hasTurn) return undefined;
  const since = memory.lookedAhead ?? memory.phase;
  const pods = evaluation.hope("podsNow", since.number);
  const budgets = evaluation.hope("budgets", since.number);
  const fault = evaluation.faultOf("podsNow") ?? evaluation.faultOf("budgets");
  if (fault !== undefined) return unseen(fault, evaluation);
  const { target: node } = memory;
  if (node === undefined) return "Wait";
  if (pods === undefined || budgets === undefined) {
    return memory.outlook === undefined ? "Wait" : undefined;
  }
  const { policy, self } = scene;
  const outlook = planDrain({ node, pods, budgets, rule: policy.drain, now: now.at, self });
  evaluation.remember({ outlook, outlookNumber: since.number });
  if (isMarked(evaluation) || memory.toldAhead) return undefined;
  const impossible = outlook.pods.filter(({ reason }) => permanentReasons.has(reason));
  if (impossible.length > 0 && reasonSince(evaluation.status, "BudgetImpossible") === undefined) {
    evaluation.says.push({ kind: "Impossible", pods: impossible });
    const told = impossible.map((pod) => ({ pod, detail: pod.detail }));
    evaluation.report("BudgetImpossible", firstFew(told));
  }
  const unplaced = evaluation.hope("unplaced", since.number);
  const unknown = evaluation.faultOf("unplaced");
  if (unknown !== undefined) return unseen(unknown, evaluation);
  if (unplaced === undefined) return "Wait";
  if (unplaced.length > 0 && reasonSince(evaluation.status, "NoCapacityElsewhere") === undefined) {
    evaluation.says.push({ kind: "Unplaced", pods: unplaced });
    evaluation.report("NoCapacityElsewhere", firstFew(unplaced));
  }
  evaluation.remember({ toldAhead: true });
  return undefined;
}

function unseen(fault: RequestFault, evaluation: Evaluation): StepFinding {
  evaluation.says.push({ kind: "Faulted", event: "look-ahead-failed", fault });
  evaluation.remember({ outlook: undefined, hasTurn: true, turnNumber: evaluation.now.number });
  return undefined;
}

function firstFew(
  found: readonly {
    readonly pod: { readonly namespace: string; readonly name: string };
    readonly detail?: string | undefined;
  }[],
): string {
  const named = found.slice(0, 3);
  const words = named.map(({ pod, detail }) => `${pod.namespace}/${pod.name} (${detail})`);
  const others = found.length - named.length;
  return [...words, ...(others > 0 ? [`and ${others} more`] : [])].join(", ");
}

/**
 * Whether the drain can run beside the others that compete with it for budgets. If not, the
 * departure is held like one that has not started: what waits together must not start together, and
 * the plan keeps the pace of all that wait. Not asked under a notice or past the departure's own
 * deadline.
 */
export function turnTaken(evaluation: Evaluation): StepFinding {
  const { memory, scene, now, status } = evaluation;
  const { outlook: plan, hasTurn } = memory;
  if (hasTurn || plan === undefined || isPastChecks(evaluation)) return undefined;
  const taken: Partial<Memory> = { hasTurn: true, turnNumber: now.number };
  if (status.demands !== undefined) {
    evaluation.remember(taken);
    return undefined;
  }
  const { deadlineAt } = scene.departure;
  const isDue = deadlineAt !== undefined && deadlineAt <= now.at;
  const conflict = isDue || evaluation.isPressing ? undefined : conflictWith(scene.drains(), plan);
  if (conflict !== undefined) {
    const found = heldBack(blocked(conflictHold(conflict)), evaluation);
    if (found !== "Wait") evaluation.intend({ ...status, demands: plan.demands });
    return found;
  }
  const demands = contestable(plan.demands);
  if (demands.length > 0) evaluation.intend({ ...status, demands });
  evaluation.remember(taken);
  return undefined;
}

/** How long after a start was recorded the cordon may follow at most. */
const longestValidMs = minutes(2);

/** A new leader takes over within it, and a cordon that is refused is given up before. */
const leastValidMs = seconds(70);

/**
 * How long a start is valid: half of `spacing.min`, within these limits. Otherwise, the nodes of
 * two starts that an outage has delayed would be cordoned together when it ends.
 */
function startValidMs({ spacing }: Policy): Millis {
  const halfMs = spacing.minMs / 2;
  return millis(Math.min(longestValidMs, Math.max(leastValidMs, halfMs)));
}

/**
 * Whether what allowed the start still does: it is asked until the node is cordoned, however long
 * that takes. If not, the departure is held like one that has not started, and everything is asked
 * again. External gates are asked again before a cordon that is tried once more.
 */
export function allowed(evaluation: Evaluation): StepFinding {
  const { scene, memory, now, status } = evaluation;
  if (evaluation.isNoticed || isPastChecks(evaluation) || isMarked(evaluation)) return undefined;
  if (isCordonSent(evaluation)) return undefined;
  const { cause, deadlineAt } = scene.departure;
  const isForced = deadlineAt !== undefined && deadlineAt <= now.at;
  const unhealthy = cause === "Manual" && isForced ? undefined : scene.fleetHold();
  if (unhealthy !== undefined) return heldBack(blocked(unhealthy), evaluation);
  const node = scene.node ?? memory.target;
  const others = node && othersGate(node);
  if (others !== undefined) return heldBack(blocked(others), evaluation);
  const spent = isForced ? undefined : spentSinceStart(evaluation);
  if (spent !== undefined) return heldBack(blocked(spent), evaluation);
  if (cause !== "Planned") return undefined;
  const policy = scene.newestPolicy();
  const lapsed = (): StepFinding => heldBack(blocked({ reason: "StartLapsed" }), evaluation);
  const { cordon } = memory.asked;
  const isAsked = cordon !== undefined && asksOutside(policy);
  const gates = isAsked
    ? evaluation.need("gates", cordon.answeredNumber ?? 0)
    : { answer: undefined };
  if (gates === undefined || node === undefined) return "Wait";
  const { answer } = gates;
  const held = holdsSinceStart({ policy, node, answer, now: now.at }).find(
    (hold) => !isForced || isFirm(hold),
  );
  if (held !== undefined) return heldBack({ ...blocked(held), until: held.retryAt }, evaluation);
  // Deadline, budgets, waves and pace were those of the policy as it was.
  if (!isSameJson(policy, scene.policy)) return lapsed();
  const startedAt = begunLastAt(status);
  const validMs = startValidMs(policy);
  const isOld =
    startedAt !== undefined &&
    now.at > evaluation.endOfWait(plus(startedAt, validMs), memory.phase.ms + validMs);
  return isOld ? lapsed() : undefined;
}

/**
 * The budget that a node has used up which went out after the start was recorded, such as one under
 * a notice. One that was out before does not count: the start may have overridden the budget.
 */
function spentSinceStart({ memory, scene }: Evaluation): NodesOut["hold"] {
  const out = scene.nodesOut();
  if (out === undefined || memory.outAtStart === undefined) return undefined;
  return out.names.isSubsetOf(new Set(memory.outAtStart)) ? undefined : out.hold;
}

/** Remembers which nodes were out when the start was decided, for `allowed`. */
export function started(evaluation: Evaluation): undefined {
  const { memory, scene } = evaluation;
  if (memory.outAtStart !== undefined || evaluation.isNoticed || isPastChecks(evaluation)) return;
  const out = scene.nodesOut();
  if (out !== undefined) evaluation.remember({ outAtStart: [...out.names] });
}

/** Whether the cordon is on its way or answered: what allowed it was asked when it was sent. */
function isCordonSent({ memory }: Evaluation): boolean {
  const { cordon } = memory.asked;
  return cordon?.isInFlight === true || cordon?.answer !== undefined;
}

/** A cordon that has failed may have arrived: a node is not held cordoned. */
function heldBack(found: PhaseResult, evaluation: Evaluation): StepFinding {
  return evaluation.memory.asked.cordon === undefined ? found : freedBefore(found, evaluation);
}

/** Suspends the actions and uncordons the node, then ends the phase. */
function freedBefore(found: PhaseResult, evaluation: Evaluation): StepFinding {
  const { departure, memory, scene } = evaluation;
  if (actionsSuspended(evaluation) === "Wait") return "Wait";
  const key = `uncordon after ${memory.asked.cordon?.attempts ?? 0} cordons`;
  const uncordon = { kind: "Uncordon", departure: departure.name, seen: scene.node } as const;
  const freed = evaluation.ask({ ...uncordon, key });
  return freed === undefined ? "Wait" : found;
}

function blocked({ reason, detail }: Pick<PhaseResult, "reason" | "detail">): PhaseResult {
  return { event: "Blocked", reason, detail };
}

/**
 * Whether the machine can be released, and no pod is known to keep it. An earlier leader may have
 * cordoned the node and started its actions.
 */
export function releasable(evaluation: Evaluation): StepFinding {
  const { memory, scene } = evaluation;
  if (isPastChecks(evaluation) || evaluation.isNoticed) return undefined;
  const answer = evaluation.need("releasable", memory.turnNumber ?? memory.phase.number);
  if (answer === undefined) return "Wait";
  if (answer.kind === "Possible") return undefined;
  // A person who asks for a departure may help with its pods.
  if (answer.reason === "DrainImpossible" && scene.departure.cause === "Manual") return undefined;
  return freedBefore(blocked(answer), evaluation);
}

function isPastChecks({ memory }: Evaluation): boolean {
  return memory.cordonedMs !== undefined;
}

/** Whether an earlier leader has marked the node, or the watch shows our own marks. */
function isMarked({ scene, memory }: Evaluation): boolean {
  const node = scene.node ?? memory.target;
  return node?.annotations[departureAnnotation] === scene.departure.name;
}
