import type { NodeFacts } from "../cluster/node.ts";
import { type Departure, isNoticed, isUnderWay } from "../departure/departure.ts";
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
