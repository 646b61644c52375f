import type { NodeFacts } from "../cluster/node.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import type { NewDeparture } from "./decision.ts";
import { type Departure, freeName, isLive, isNoticed, isUnderWay } from "./departure.ts";

/** A person's request that a node departs at an instant, and by a deadline. */
export interface DepartRequest {
  readonly departAt: Instant;
  readonly deadlineAt?: Instant | undefined;
  /** The policy that selects the node. */
  readonly policy?: string | undefined;
}

/** The write that fulfills the request. */
export type DepartStep =
  | { readonly kind: "Create"; readonly made: NewDeparture }
  /** Reschedules the departure of an earlier request. */
  | { readonly kind: "Move"; readonly departure: Departure; readonly to: DepartureMove }
  /** The node is departing already, by a notice or a request. */
  | { readonly kind: "Leave"; readonly departure: Departure };

/** The new instants of a departure that has not started. */
export interface DepartureMove {
  readonly departAt: Instant;
  /** Absent: unchanged; null: removed. */
  readonly deadlineAt?: Instant | null | undefined;
  /** Absent: unchanged. */
  readonly policy?: string | undefined;
}

/**
 * Decides what to write for a request. A planned departure stays unchanged: it is held while the
 * requested one is live, and ends with the node. `departures` may be those of the whole cluster.
 */
export function departStep(
  node: NodeFacts,
  request: DepartRequest,
  departures: readonly Departure[],
): DepartStep {
  const ofNode = departures.filter((one) => one.node.uid === node.uid);
  const live = ofNode.filter(isLive);
  // An advisory departure may be held for long.
  const isLeaving = (one: Departure) => isNoticed(one) && one.status.phase !== "Held";
  const leaving = live.find((one) => isUnderWay(one) || isLeaving(one));
  if (leaving !== undefined) return { kind: "Leave", departure: leaving };
  const asked = live.find(({ cause }) => cause === "Manual");
  if (asked !== undefined) {
    const sameDeadline =
      request.deadlineAt === undefined || request.deadlineAt === asked.deadlineAt;
    const same = asked.departAt === request.departAt && sameDeadline;
    if (same) return { kind: "Leave", departure: asked };
    return { kind: "Move", departure: asked, to: moveOf(asked, request) };
  }
  const { name, uid, providerID, bootID } = node;
  return {
    kind: "Create",
    made: {
      ...freeName(node, (called) => departures.find((one) => one.name === called)),
      node: { name, uid, providerID, bootID },
      cause: "Manual",
      ...request,
      source: "person",
      reason: "Requested",
      message: explain("Requested", { node: name }),
    },
  };
}

/** Drops an earlier deadline that the new instant has passed, since it would force pods. */
function moveOf({ deadlineAt: former }: Departure, request: DepartRequest): DepartureMove {
  const isOver = former !== undefined && former <= request.departAt;
  return { ...request, deadlineAt: request.deadlineAt ?? (isOver ? null : undefined) };
}
