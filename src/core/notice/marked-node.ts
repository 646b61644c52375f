import type { NodeFacts } from "../cluster/node.ts";
import {
  type Cause,
  cloudDeadline,
  type Departure,
  isNoticed,
  isUnderWay,
} from "../departure/departure.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import { departingTaint, departureAnnotation } from "./interruption.ts";

/** Whether a departure stands marked on its node, and is not about to take that back. */
export function mayShowMark({ name, status }: Departure, node: NodeFacts): boolean {
  const { phase } = status;
  const isLeaving = phase === "Preparing" || phase === "Draining" || phase === "Releasing";
  return isLeaving && node.annotations[departureAnnotation] === name;
}

/** Whether the taint on the node names another cause: a notice has come since. */
export function isMarkOutdated({ cause }: Departure, { taints }: NodeFacts): boolean {
  const taint = taints.find(({ key }) => key === departingTaint);
  return taint !== undefined && taint.value !== cause;
}

/** Whether a notice has overtaken the instant for which a departure was planned: it is under way already. */
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
