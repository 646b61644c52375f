import {
  compareIdentity,
  departingTaint,
  holdAnnotation,
  holdOf,
  type NodeFacts,
} from "../cluster/node.ts";
import {
  cloudDeadline,
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { type PhaseEvent, phaseAfter } from "../departure/ledger.ts";
import type { Cause } from "../policy/action.ts";
import { explain, type Reason } from "../reason/reason.ts";
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
 * Detects what interrupts a live departure in any phase: its node is gone or has another machine,
 * or a person has cancelled it. Undefined if nothing concerns the current phase. `node` is the Node
 * of that name as last seen.
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
 * Whether a notice restarts a voluntary departure that waits or is being rolled back. A withdrawal
 * of the notice itself does not, nor does advice that was already being acted on.
 */
function isToBeginAnew({ cause, noticedAt, status }: Departure): boolean {
  if (noticedAt === undefined) return false;
  if (isVoluntary(cause)) return true;
  const isUndone = status.phase === "RollingBack" && status.reason !== "NoticeWithdrawn";
  return isUndone && !mayBeIgnored(cause);
}

/**
 * Detects that a person has cancelled the departure, by `kubectl uncordon`, which leaves our
 * annotation in place, or by a hold. A node without our annotation proves nothing, because its
 * state may be older than our marks.
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
 * Whether a hold was set after the start. One that had expired at the start, or that the deadline
 * has overridden, was not.
 */
function isHeldAnew(departure: Departure, node: NodeFacts): boolean {
  const { createdAt, departAt, deadlineAt, status } = departure;
  const hold = holdOf(node);
  if (hold.kind !== "Until") return hold.kind === "Always" && hold.mark === holdAnnotation;
  const startedAt = status.startedAt ?? hold.until;
  if (hold.until <= startedAt) return false;
  // A departure that missed its instant may have got one past its deadline.
  const plannedAt = earlier(departAt ?? startedAt, createdAt ?? startedAt);
  return deadlineAt === undefined || plannedAt > deadlineAt || startedAt < deadlineAt;
}

function cancelled(detail: string): Interruption {
  return { event: "Cancelled", reason: "CancelledByPerson", detail };
}

/** Whether the node carries the departure's marks, and they are not about to be removed. */
export function mayShowMark({ name, status }: Departure, node: NodeFacts): boolean {
  const { phase } = status;
  const isLeaving = phase === "Preparing" || phase === "Draining" || phase === "Releasing";
  return isLeaving && node.annotations[departureAnnotation] === name;
}

/** The departure named by leftover marks: it has ended, and no other one owns the node. */
export function orphanOn(
  { annotations }: NodeFacts,
  live: readonly Departure[],
): string | undefined {
  const named = annotations[departureAnnotation];
  if (named === undefined) return undefined;
  const isKept = live.some((one) => one.name === named || isUnderWay(one) || isNoticed(one));
  return isKept ? undefined : named;
}

/** Whether the node's taint names an earlier cause, because a notice has arrived since. */
export function isMarkOutdated({ cause }: Departure, { taints }: NodeFacts): boolean {
  const taint = taints.find(({ key }) => key === departingTaint);
  return taint !== undefined && taint.value !== cause;
}

/**
 * Whether a notice has superseded the planned instant: the departure is already under way.
 */
export function isOvertaken(departure: Departure): boolean {
  const { departAt, status } = departure;
  if (departAt === undefined || status.startedAt === undefined) return false;
  const isGoing = isUnderWay(departure) && status.phase !== "Ended";
  return isGoing && isNoticed(departure) && departAt > status.startedAt;
}

/** The marks on the node of a departure. */
export interface NodeMark {
  readonly departure: string;
  readonly cause: Cause;
  readonly dueAt: Instant | undefined;
  readonly message: string;
}

/** The marks of a departure. They only name a deadline that comes from the cloud. */
export function markOf(departure: Departure): NodeMark {
  const { node, name, cause, deadlineAt } = departure;
  const facts = { node: node.name, deadlineAt: cloudDeadline(departure) };
  const message = explain(isNoticed(departure) ? "Noticed" : "Started", facts);
  return { departure: name, cause, dueAt: deadlineAt, message };
}
