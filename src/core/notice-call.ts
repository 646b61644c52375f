import type { DepartureOrder } from "./decision.ts";
import { type Departure, freeName, isVoluntary } from "./departure.ts";
import { explain } from "./explain.ts";
import type { NodeFacts } from "./node.ts";
import type { Notice, NoticeCause } from "./notice.ts";
import { earlier, type Instant } from "./time.ts";

/** What a notice about a node calls for: a departure of its own, or that one there is changed. */
export type NoticeCall =
  | { readonly kind: "Make"; readonly order: DepartureOrder }
  | { readonly kind: "Force"; readonly departure: Departure; readonly word: ForcingWord };

/** What makes a planned departure a forced one, or one that is forced an earlier one. */
export interface ForcingWord {
  readonly noticedAt: Instant;
  readonly deadlineAt?: Instant | undefined;
  readonly source: string;
  /** Absent: it stays. */
  readonly cause?: NoticeCause | undefined;
}

/** The departure that a notice about a node makes, under the next free name of the node's. */
export function noticeOrder(
  node: NodeFacts,
  how: {
    readonly notice: Notice;
    readonly source: string;
    /** The departures that the node has, and had. */
    readonly former: readonly Departure[];
  },
): DepartureOrder {
  const { cause, deadlineAt, noticedAt } = how.notice;
  const { name, uid, providerID, bootID } = node;
  return {
    name: freeName(node, how.former),
    node: { name, uid, providerID, bootID },
    ...{ cause, deadlineAt, noticedAt, source: how.source, reason: "Noticed" },
    message: explain("Noticed", { node: name, deadlineAt }),
  };
}

/**
 * What a notice that came as a departure of its own says to the one that has the node already; undefined
 * where that says as much. A plan's own deadline gives way to the cloud's, a person's counts on.
 */
export function wordFor(owner: Departure, notice: Departure): ForcingWord | undefined {
  const isFirst = owner.noticedAt === undefined && isVoluntary(owner.cause);
  const known = isFirst && owner.cause === "Planned" ? undefined : owner.deadlineAt;
  const deadlineAt = earliest(known, notice.deadlineAt);
  if (!isFirst && deadlineAt === owner.deadlineAt) return undefined;
  const noticedAt = owner.noticedAt ?? notice.noticedAt ?? notice.createdAt;
  if (noticedAt === undefined) return undefined;
  return { noticedAt, deadlineAt, source: notice.source ?? "" };
}

function earliest(a: Instant | undefined, b: Instant | undefined): Instant | undefined {
  return a === undefined || b === undefined ? (a ?? b) : earlier(a, b);
}
