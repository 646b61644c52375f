import {
  compareIdentity,
  departingTaint,
  holdAnnotation,
  holdOf,
  type IdentityMatch,
  mayPassOnItsName,
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
  policyNameOf,
} from "../departure/departure.ts";
import { type PhaseEvent, phaseAfter } from "../departure/ledger.ts";
import type { Cause } from "../policy/action.ts";
import { defaultPolicy, type NoticeReaction, type Policy, selectPolicy } from "../policy/policy.ts";
import { inEnglish, type Sentence } from "../reason/english.ts";
import { explain, type Reason } from "../reason/reason.ts";
import { earlier, hours, type Instant, later, type Millis, plus } from "../time/time.ts";
import { isMarkGone } from "./node-notice.ts";
import { isNoticeOver, maintenanceWindowMs, outlivedAt } from "./notice.ts";

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
  if (identity !== "Same") return replacement(identity, node);
  if (departure.deletionAt !== undefined) return cancelled({ says: "detail.DepartureDeleted" });
  if (departure.withdrawnAt !== undefined || isMarkGone(departure, node)) {
    return { event: "Withdrawn", reason: "NoticeWithdrawn" };
  }
  if (isToBeginAnew(departure)) return { event: "Noticed", reason: "Noticed" };
  if (departure.status.startedAt === undefined || !isVoluntary(departure.cause)) return undefined;
  return cancellation(departure, node);
}

/** The end of a departure by another machine behind its node, or by another boot of its own. */
export function replacement(found: Exclude<IdentityMatch, "Same">, node: NodeFacts): Interruption {
  const isReboot = found === "Rebooted" && !mayPassOnItsName(node);
  return { event: "MachineReplaced", reason: isReboot ? "MachineRebooted" : "MachineReplaced" };
}

/**
 * Whether a notice restarts a voluntary departure that waits or is being rolled back. A withdrawal
 * of the notice itself does not, nor does advice that was already being acted on.
 */
function isToBeginAnew({ cause, noticedAt, status }: Departure): boolean {
  if (noticedAt === undefined) return false;
  if (isVoluntary(cause)) return true;
  const isUndone = status.phase === "RollingBack" && !isNoticeOver(status);
  return isUndone && !mayBeIgnored(cause);
}

/**
 * Detects that a person has cancelled the departure, by `kubectl uncordon`, which leaves our
 * annotation in place, or by a hold. A node without our annotation proves nothing, because its
 * state may be older than our marks.
 */
function cancellation(departure: Departure, node: NodeFacts): Interruption | undefined {
  const ours = node.annotations[departureAnnotation] === departure.name;
  if (ours && !node.unschedulable) return cancelled({ says: "detail.NodeUncordoned" });
  if (departure.hold) return cancelled({ says: "detail.DepartureHeld" });
  if (departure.cause === "Planned" && isHeldAnew(departure, node)) {
    return cancelled({ says: "detail.NodeMarked", mark: holdAnnotation });
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

function cancelled(why: Sentence): Interruption {
  return { event: "Cancelled", reason: "CancelledByPerson", detail: inEnglish(why) };
}

/** Whether the node carries the departure's marks, and they are not about to be removed. */
export function mayShowMark({ name, status }: Departure, node: NodeFacts): boolean {
  const { phase } = status;
  const isLeaving = phase === "Preparing" || phase === "Draining" || phase === "Releasing";
  return isLeaving && node.annotations[departureAnnotation] === name;
}

/**
 * The departure named by leftover marks: it has ended, and no other one owns the node. A Node that
 * is being deleted keeps them: its machine has been released, and a finalizer may hold it for long.
 */
export function orphanOn(
  { annotations, deletionAt }: NodeFacts,
  live: readonly Departure[],
): string | undefined {
  const named = annotations[departureAnnotation];
  if (named === undefined || deletionAt !== undefined) return undefined;
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

/** How long a notice without a deadline counts. */
const endlessMs: Partial<Record<Cause, Millis>> = {
  ScheduledMaintenance: maintenanceWindowMs,
  // As long as a group waits at a hook, with heartbeats.
  LifecycleHook: hours(48),
};
const otherEndlessMs = hours(1);

/**
 * The policy of a departure: the one it names, otherwise the one that selects its node, otherwise
 * the defaults. Agents do not know policies, so their departures name none.
 */
export function policyFor(
  departure: Departure,
  node: NodeFacts | undefined,
  policies: readonly Policy[],
): Policy {
  const name = policyNameOf(departure);
  const named = policies.find((policy) => policy.name === name);
  if (named !== undefined) return named;
  return (node && selectPolicy(node, policies)?.policy) ?? defaultPolicy;
}

/** The policy to record in the status of a departure whose spec names none. */
export function policyToRecord(departure: Departure, { name }: Policy): string | undefined {
  const isDefault = name === defaultPolicy.name;
  return departure.policy !== undefined || isDefault ? undefined : name;
}

/**
 * The policy's reaction to a notice. A cause without a rule drains, since notices fail open to
 * draining. A policy in dry run only notifies.
 */
export function reactionTo(departure: Pick<Departure, "cause">, policy: Policy): NoticeReaction {
  if (isVoluntary(departure.cause)) return "Drain";
  if (policy.dryRun) return "Notify";
  switch (departure.cause) {
    case "SpotInterruption":
      return policy.onNotice.spotInterruption;
    case "RebalanceRecommendation":
      return policy.onNotice.rebalance;
    case "ScheduledMaintenance":
      return policy.onNotice.maintenance;
    default:
      return "Drain";
  }
}

/** Whether the node departs by this reaction, even if its pods are not evicted. */
export function makesLeave(reaction: NoticeReaction): boolean {
  return reaction !== "Ignore" && reaction !== "Notify";
}

/**
 * How long a drained node waits for others to take its machine before it is uncordoned. Undefined
 * if we release the machine, or the cloud takes it.
 */
export function awaitedUntil(departure: Departure, { instance }: Policy): Instant | undefined {
  if (instance.release !== "None" || isNoticed(departure)) return undefined;
  const drained = departure.status.timeline.findLast(({ step }) => step === "Releasing");
  return drained && plus(drained.at, instance.awaitMachineMs);
}

/**
 * When to stop waiting for the cloud to take a machine: a request or a plan stands then, and any
 * other node is uncordoned if its machine still runs (`stillRuns`). Undefined: without a notice.
 */
export function givenUpAt(departure: Departure): Instant | undefined {
  const { cause, noticedAt, status } = departure;
  const deadlineAt = cloudDeadline(departure);
  if (deadlineAt !== undefined) return outlivedAt({ cause, deadlineAt });
  if (noticedAt === undefined) return undefined;
  // It may have waited longer than that before it started, or have started before the notice.
  const sinceAt = later(status.startedAt ?? noticedAt, noticedAt);
  return plus(sinceAt, endlessMs[cause] ?? otherEndlessMs);
}

/**
 * Whether a node shows that its machine has outlived a notice. A kubelet that is silent shows
 * nothing: a machine that its cloud has stopped may keep its Node object for ever.
 */
export function stillRuns(departure: Departure, node: NodeFacts | undefined): boolean {
  return node?.ready === true && compareIdentity(departure.node, node) === "Same";
}
