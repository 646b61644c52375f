import type { NodeFacts } from "../cluster/node.ts";
import type { DepartureOrder } from "../departure/decision.ts";
import { type Departure, departureOfNotice, freeName, isNoticed } from "../departure/departure.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import type { Notice } from "./notice.ts";
import { type NoticeUpdate, noticeUpdate } from "./notice-merge.ts";

/** What a notice about a node calls for: a departure of its own, or that one there is changed. */
export type NoticeCall =
  | { readonly kind: "Make"; readonly order: DepartureOrder }
  | { readonly kind: "Force"; readonly departure: Departure; readonly update: NoticeUpdate }
  /** The cloud has taken back what made it. */
  | { readonly kind: "Withdraw"; readonly departure: Departure; readonly at: Instant };

interface Told {
  readonly notice: Notice;
  /** The departures that the node has, and had. */
  readonly former: readonly Departure[];
  /** Of whichever node. */
  departureNamed(name: string): Departure | undefined;
}

/** What the departure of a notice names as its source, by which the same event is known again. */
export function sourceOf({ source, eventId }: Notice): string {
  return `${source}/${eventId}`;
}

/**
 * What a notice calls for where it is new; undefined where a departure of the node says no less, or
 * stands until the machine is gone. Where one stands the earlier deadline counts.
 */
export function callOf(node: NodeFacts, how: Told): NoticeCall | undefined {
  const { notice, former } = how;
  const chosen = departureOfNotice(former, notice.cause);
  if (chosen === undefined) return { kind: "Make", order: noticeOrder(node, how) };
  // Our own release is on its way: the machine goes as planned, whoever takes it.
  if (!isNoticed(chosen) && chosen.status.phase === "Releasing") return undefined;
  const update = noticeUpdate(chosen, { ...notice, source: sourceOf(notice) });
  return update && { kind: "Force", departure: chosen, update };
}

/** The departure that a notice about a node makes, under the next free name of the node's. */
export function noticeOrder(node: NodeFacts, how: Told): DepartureOrder {
  const { cause, deadlineAt, noticedAt, withdrawn } = how.notice;
  const { name, uid, providerID, bootID } = node;
  return {
    ...freeName(node, how.departureNamed),
    node: { name, uid, providerID, bootID },
    ...{ cause, deadlineAt, noticedAt, source: sourceOf(how.notice), reason: "Noticed" },
    message: explain("Noticed", { node: name, deadlineAt }),
    ...(withdrawn === true ? off(name, noticedAt) : {}),
  };
}

function off(
  node: string,
  withdrawnAt: Instant,
): Pick<DepartureOrder, "withdrawnAt" | "reason" | "message"> {
  return { withdrawnAt, reason: "NoticeWithdrawn", message: explain("NoticeWithdrawn", { node }) };
}
