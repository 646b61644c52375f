import type { DepartureOrder } from "./decision.ts";
import { type Departure, freeName } from "./departure.ts";
import { explain } from "./explain.ts";
import type { NodeFacts } from "./node.ts";
import type { Notice, NoticeCause } from "./notice.ts";
import type { Instant } from "./time.ts";

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
