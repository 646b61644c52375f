import { isNoticed } from "../../core/departure/departure.ts";
import { begunLastAt, type PhaseResult, reasonSince } from "../../core/departure/ledger.ts";
import { readFleetHealth } from "../../core/limits/fleet-health.ts";
import { asksOutside, holdsSinceStart } from "../../core/limits/gate.ts";
import { departureAnnotation } from "../../core/notice/interruption.ts";
import { isFirm } from "../../core/plan/start.ts";
import { minutes, plus } from "../../core/time/time.ts";
import { type StepContext, targetOf } from "./step.ts";

/**
 * How long after a start was recorded the cordon may follow, unless the departure itself has waited
 * for another drain. A new leader takes over well within it.
 */
const startValidMs = minutes(2);

/**
 * Why a departure must not be cordoned now although it has started: the fleet has become unhealthy,
 * the window has closed or a freeze has begun meanwhile, or too much time has passed, in which
 * others may have started. It is then held like one that has not started, and everything is asked
 * again. One that has waited for another drain keeps its turn, but its external gates are asked
 * again. Undefined if the node is marked already, and under a notice.
 */
export async function heldAtTheAct(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { departure, clock, policy, view, gates } = context;
  const { status, cause } = departure();
  if (isBoundToLeave(context)) return undefined;
  const unhealthy = heldByFleet(context);
  if (unhealthy !== undefined || cause !== "Planned") return unhealthy;
  const hasWaited = reasonSince(status, "ConflictWait") !== undefined;
  const newest = view().policies.find((one) => one.name === policy.name) ?? policy;
  const isAsked = hasWaited && asksOutside(newest);
  const answers = isAsked ? await gates.ask([newest], signal) : {};
  // A notice may have come while the gates were asked.
  if (isBoundToLeave(context)) return undefined;
  const node = context.node() ?? targetOf(context);
  const now = clock.now();
  const { deadlineAt } = departure();
  const isForced = deadlineAt !== undefined && deadlineAt <= now;
  const held = holdsSinceStart({
    ...{ policy: newest, node, answer: answers[newest.name], now },
  }).find((hold) => !isForced || isFirm(hold));
  if (held !== undefined) {
    return { event: "Blocked", reason: held.reason, detail: held.detail, until: held.retryAt };
  }
  const startedAt = begunLastAt(status);
  const isOld = startedAt !== undefined && now > plus(startedAt, startValidMs);
  return isOld && !hasWaited ? { event: "Blocked", reason: "StartLapsed" } : undefined;
}

/** An unhealthy fleet holds a person's request too, until the deadline that the person set. */
function heldByFleet({ departure, clock, policy, view }: StepContext): PhaseResult | undefined {
  const { cause, deadlineAt } = departure();
  const now = clock.now();
  const unhealthy = readFleetHealth(view(), now).get(policy.name)?.hold;
  const isInsistedOn = cause === "Manual" && deadlineAt !== undefined && deadlineAt <= now;
  if (unhealthy === undefined || isInsistedOn) return undefined;
  return { event: "Blocked", reason: unhealthy.reason, detail: unhealthy.detail };
}

/** Whether nothing holds the departure any more: it has a notice, or has marked the node. */
function isBoundToLeave(context: StepContext): boolean {
  const departure = context.departure();
  if (isNoticed(departure)) return true;
  const node = context.node() ?? targetOf(context);
  return node.annotations[departureAnnotation] === departure.name;
}
