import type { NodeFacts } from "../cluster/node.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import type { NewDeparture } from "./decision.ts";
import { type Departure, freeName, isLive, isNoticed, isUnderWay } from "./departure.ts";

/** What a person wants of a node: to leave at an instant, and to be gone by another. */
export interface DepartRequest {
  readonly departAt: Instant;
  readonly deadlineAt?: Instant | undefined;
  /** The policy that the node falls under. */
  readonly policy?: string | undefined;
}

/** What has to be written so that the request comes true. */
export type DepartStep =
  | { readonly kind: "Create"; readonly made: NewDeparture }
  /** A person has asked before: the same departure, at the new instants. */
  | { readonly kind: "Move"; readonly departure: Departure; readonly to: DepartureMove }
  /** It is leaving already, because the cloud or a person said so. */
  | { readonly kind: "Leave"; readonly departure: Departure };

/** The new instants of a departure that has not begun. */
export interface DepartureMove {
  readonly departAt: Instant;
  /** Absent: it stays; null: there is none any more. */
  readonly deadlineAt?: Instant | null | undefined;
  /** Absent: it stays. */
  readonly policy?: string | undefined;
}

/**
 * A departure that is only planned stays as it is: it is held while the person's own is live, and
 * ends with the node. `departures` may be those of the whole cluster.
 */
export function departStep(
  node: NodeFacts,
  request: DepartRequest,
  departures: readonly Departure[],
): DepartStep {
  const ofNode = departures.filter((one) => one.node.uid === node.uid);
  const live = ofNode.filter(isLive);
  // What the cloud only advises may be held for long.
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

/** The deadline of the request before, past which the node would now begin, would force it out. */
function moveOf({ deadlineAt: former }: Departure, request: DepartRequest): DepartureMove {
  const isOver = former !== undefined && former <= request.departAt;
  return { ...request, deadlineAt: request.deadlineAt ?? (isOver ? null : undefined) };
}
