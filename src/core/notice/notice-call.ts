import type { NodeFacts } from "../cluster/node.ts";
import type { DepartureOrder } from "../departure/decision.ts";
import {
  type Departure,
  departureOfNotice,
  freeName,
  isGraver,
  isLive,
  isNoticed,
  isVoluntary,
  mayBeIgnored,
} from "../departure/departure.ts";
import { explain } from "../reason/explain.ts";
import type { Instant } from "../time/time.ts";
import { causeWith, deadlineWith, type Notice, type NoticeCause } from "./notice.ts";

/** What a notice about a node calls for: a departure of its own, or that one there is changed. */
export type NoticeCall =
  | { readonly kind: "Make"; readonly order: DepartureOrder }
  | { readonly kind: "Force"; readonly departure: Departure; readonly update: NoticeUpdate }
  /** The cloud has taken back what made it. */
  | { readonly kind: "Withdraw"; readonly departure: Departure; readonly at: Instant };

/** What makes a planned departure a forced one, or one that is forced an earlier one. */
export interface NoticeUpdate {
  readonly noticedAt: Instant;
  /** Absent: the cloud names none, and the plan's counts no more. */
  readonly deadlineAt?: Instant | undefined;
  readonly source: string;
  /** Absent: it stays. */
  readonly cause?: NoticeCause | undefined;
}

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
  if (isNoticed(chosen)) return tightened(chosen, notice);
  // Our own release is on its way: the machine goes as planned, whoever takes it.
  if (chosen.status.phase === "Releasing") return undefined;
  const update: NoticeUpdate = {
    noticedAt: notice.noticedAt,
    deadlineAt: deadlineWith(chosen, notice),
    source: sourceOf(notice),
    cause: causeWith(chosen, notice),
  };
  return { kind: "Force", departure: chosen, update };
}

/** Whether it is being taken back: a word that is written onto it would go with it. */
export function isUndoing(departure: Departure): boolean {
  return isLive(departure) && departure.withdrawnAt !== undefined;
}

/**
 * What is known stays, whoever told it, and the deadline only moves to an earlier instant. A cause gives
 * way to a graver one, at which the policy may want more.
 */
function tightened(departure: Departure, notice: Notice): NoticeCall | undefined {
  const { noticedAt } = notice;
  const deadlineAt = deadlineWith(departure, notice);
  const cause = causeWith(departure, notice);
  if (deadlineAt === departure.deadlineAt && cause === undefined) return undefined;
  const update: NoticeUpdate = {
    noticedAt: departure.noticedAt ?? noticedAt,
    deadlineAt,
    source: cause === undefined ? (departure.source ?? "") : sourceOf(notice),
    cause,
  };
  return { kind: "Force", departure, update };
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

/**
 * What a notice that came as a departure of its own says to the one that has the node already; undefined
 * where that says as much. A recommendation without an end says nothing to a node that is leaving: it would only
 * keep the machine.
 */
export function wordFor(owner: Departure, notice: Departure): NoticeUpdate | undefined {
  const isFirst = owner.noticedAt === undefined && isVoluntary(owner.cause);
  if (isFirst && notice.deadlineAt === undefined && mayBeIgnored(notice.cause)) return undefined;
  const told = { cause: notice.cause as NoticeCause, deadlineAt: notice.deadlineAt };
  const deadlineAt = deadlineWith(owner, told);
  const cause = isVoluntary(notice.cause) ? undefined : causeWith(owner, told);
  if (!isFirst && deadlineAt === owner.deadlineAt && cause === undefined) return undefined;
  const noticedAt = owner.noticedAt ?? notice.noticedAt ?? notice.createdAt;
  if (noticedAt === undefined) return undefined;
  return { noticedAt, deadlineAt, source: notice.source ?? "", cause };
}

/** Whether a notice with this deadline and cause has nothing to add to what the departure says. */
export function saysAsMuch(
  { noticedAt, deadlineAt, cause }: Departure,
  update: { readonly deadlineAt?: Instant | undefined; readonly cause?: NoticeCause | undefined },
): boolean {
  if (noticedAt === undefined) return false;
  if (update.cause !== undefined && (isVoluntary(cause) || isGraver(update.cause, cause)))
    return false;
  return (
    update.deadlineAt === undefined || (deadlineAt ?? Number.POSITIVE_INFINITY) <= update.deadlineAt
  );
}
