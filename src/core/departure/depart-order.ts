import type { NodeFacts } from "../cluster/node.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import type { DepartureOrder } from "./decision.ts";
import { type Departure, freeName, isLive, isNoticed, isUnderWay } from "./departure.ts";

/** What a person wants of a node: to leave at an instant, and to be gone by another. */
export interface DepartWish {
  readonly departAt: Instant;
  readonly deadlineAt?: Instant | undefined;
  /** The policy that the node falls under. */
  readonly policy?: string | undefined;
}

/** What has to be written so that the wish comes true. */
export type DepartStep =
  | { readonly kind: "Create"; readonly order: DepartureOrder }
  /** A person has asked before: the same departure, at the new instants. */
  | { readonly kind: "Move"; readonly departure: Departure; readonly to: DepartMove }
  /** It is leaving already, because the cloud or a person said so. */
  | { readonly kind: "Leave"; readonly departure: Departure };

/** The new instants of a request; a deadline that is absent stays, and one that is null goes. */
interface DepartMove extends Pick<DepartWish, "departAt" | "policy"> {
  readonly deadlineAt?: Instant | null | undefined;
}

/**
 * A departure that is only planned stays as it is: it is held while the person's own is live, and
 * ends with the node. `departures` may be those of the whole cluster.
 */
export function departStep(
  node: NodeFacts,
  wish: DepartWish,
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
    const sameDeadline = wish.deadlineAt === undefined || wish.deadlineAt === asked.deadlineAt;
    const same = asked.departAt === wish.departAt && sameDeadline;
    if (same) return { kind: "Leave", departure: asked };
    return { kind: "Move", departure: asked, to: moveOf(asked, wish) };
  }
  const { name, uid, providerID, bootID } = node;
  return {
    kind: "Create",
    order: {
      ...freeName(node, (called) => departures.find((one) => one.name === called)),
      node: { name, uid, providerID, bootID },
      cause: "Manual",
      ...wish,
      source: "person",
      reason: "Requested",
      message: explain("Requested", { node: name }),
    },
  };
}

/** The deadline of the wish before, past which the node would now begin, would force it out. */
function moveOf({ deadlineAt: former }: Departure, wish: DepartWish): DepartMove {
  const isOver = former !== undefined && former <= wish.departAt;
  return { ...wish, deadlineAt: wish.deadlineAt ?? (isOver ? null : undefined) };
}
