import { holdAnnotation, holdOf } from "../cluster/hold.ts";
import { compareIdentity, departingTaint, type NodeFacts } from "../cluster/node.ts";
import {
  cloudDeadline,
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { type PhaseEvent, phaseAfter } from "../departure/phase.ts";
import type { Cause } from "../policy/cause.ts";
import { explain } from "../reason/explain.ts";
import type { Reason } from "../reason/reason.ts";
import { earlier, type Instant } from "../time/time.ts";
import { isMarkGone } from "./node-notice.ts";

export interface Interruption {
  readonly event: PhaseEvent;
  readonly reason: Reason;
  readonly detail?: string | undefined;
}

/** The annotation that names the Departure which marked a node. */
export const departureAnnotation = "lastcall.dev/departure";

/**
 * What the world has done to a departure that is live, whatever it was doing: its node went, got
 * another machine, or a person took the departure back. Undefined where nothing of it concerns
 * the departure's phase. `node` is the Node of that name as last seen.
 */
export function interruptionOf(
  departure: Departure,
  node: NodeFacts | undefined,
): Interruption | undefined {
  if (!isLive(departure)) return undefined;
  const found = lookAt(departure, node);
  if (found === undefined) return undefined;
  return phaseAfter(departure.status.phase, found.event) === undefined ? undefined : found;
}

function lookAt(departure: Departure, node: NodeFacts | undefined): Interruption | undefined {
  if (node === undefined) return { event: "NodeGone", reason: "NodeGone" };
  const identity = compareIdentity(departure.node, node);
  if (identity === "OtherNode") return { event: "NodeGone", reason: "NodeGone" };
  if (identity !== "Same") return { event: "MachineReplaced", reason: "MachineReplaced" };
  if (departure.deletionAt !== undefined) return cancelled("the Departure was deleted");
  if (departure.withdrawnAt !== undefined || isMarkGone(departure, node)) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  if (isToBeginAnew(departure)) return { event: "Noticed", reason: "Noticed" };
  if (departure.status.startedAt === undefined || !isVoluntary(departure.cause)) return undefined;
  return takenBack(departure, node);
}

/**
 * Whether a notice has come to a departure that somebody chose: to one that waits, or that was
 * being withdrawn meanwhile. What ended the notice itself begins nothing, and nor does advice,
 * which was being acted upon.
 */
function isToBeginAnew({ cause, noticedAt, status }: Departure): boolean {
  if (noticedAt === undefined) return false;
  if (isVoluntary(cause)) return true;
  const isUndone = status.phase === "RollingBack" && status.reason !== "NoticeWithdrawn";
  return isUndone && !mayBeIgnored(cause);
}

/**
 * A person speaks by `kubectl uncordon`, which leaves our annotation in place, or by a hold. A node
 * without our annotation proves nothing: the picture may be older than our mark.
 */
function takenBack(departure: Departure, node: NodeFacts): Interruption | undefined {
  const ours = node.annotations[departureAnnotation] === departure.name;
  if (ours && !node.unschedulable) return cancelled("the node was uncordoned");
  if (departure.hold) return cancelled("the Departure has hold set");
  if (departure.cause === "Planned" && isHeldAnew(departure, node)) {
    return cancelled(`the node has the annotation ${holdAnnotation}`);
  }
  return undefined;
}

/**
 * A hold that was over when the departure began, or that its deadline went past, is none that was
 * set anew.
 */
function isHeldAnew(departure: Departure, node: NodeFacts): boolean {
  const { createdAt, departAt, deadlineAt, status } = departure;
  const hold = holdOf(node);
  if (hold.kind !== "Until") return hold.kind === "Always" && hold.mark === holdAnnotation;
  const startedAt = status.startedAt ?? hold.until;
  if (hold.until <= startedAt) return false;
  // What was planned in time may have missed its instant, and have got one past the deadline.
  const plannedAt = earlier(departAt ?? startedAt, createdAt ?? startedAt);
  return deadlineAt === undefined || plannedAt > deadlineAt || startedAt < deadlineAt;
}

function cancelled(detail: string): Interruption {
  return { event: "Cancelled", reason: "CancelledByPerson", detail };
}

/** Whether a departure stands marked on its node, and is not about to take that back. */
export function mayShowMark({ name, status }: Departure, node: NodeFacts): boolean {
  const { phase } = status;
  const isLeaving = phase === "Preparing" || phase === "Draining" || phase === "Releasing";
  return isLeaving && node.annotations[departureAnnotation] === name;
}

/** The departure that a mark on the node names, where that is over and no other has the node. */
export function orphanOn(
  { annotations }: NodeFacts,
  live: readonly Departure[],
): string | undefined {
  const named = annotations[departureAnnotation];
  if (named === undefined) return undefined;
  const isKept = live.some((one) => one.name === named || isUnderWay(one) || isNoticed(one));
  return isKept ? undefined : named;
}

/** Whether the taint on the node names another cause: a notice has come since. */
export function isMarkOutdated({ cause }: Departure, { taints }: NodeFacts): boolean {
  const taint = taints.find(({ key }) => key === departingTaint);
  return taint !== undefined && taint.value !== cause;
}

/**
 * Whether a notice has overtaken the instant for which a departure was planned: it is under way
 * already.
 */
export function isOvertaken(departure: Departure): boolean {
  const { departAt, status } = departure;
  if (departAt === undefined || status.startedAt === undefined) return false;
  const isGoing = isUnderWay(departure) && status.phase !== "Ended";
  return isGoing && isNoticed(departure) && departAt > status.startedAt;
}

/** What stands on the node of a departure. */
export interface NodeMark {
  readonly departure: string;
  readonly cause: Cause;
  readonly dueAt: Instant | undefined;
  readonly message: string;
}

/** A deadline that the cloud has not named is not called the cloud's. */
export function markOf(departure: Departure): NodeMark {
  const { node, name, cause, deadlineAt } = departure;
  const facts = { node: node.name, deadlineAt: cloudDeadline(departure) };
  const message = explain(isNoticed(departure) ? "Noticed" : "Started", facts);
  return { departure: name, cause, dueAt: deadlineAt, message };
}
