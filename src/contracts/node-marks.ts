import type { IdentityMatch, NodeFacts, NodeIdentity } from "../core/cluster/node.ts";
import type { SoonStanding } from "../core/plan/departing-soon.ts";
import type { Cause } from "../core/policy/cause.ts";
import type { Instant } from "../core/time/time.ts";

/**
 * Writes on Node objects. Each write tests who the node is in the same request (uid, providerID,
 * bootID), so that between the look and the act no other machine can take the name.
 */
export interface NodeMarks {
  /** Reads one node afresh; undefined where there is none of that name. */
  read(name: string): Promise<NodeFacts | undefined>;
  /** Cordon, taint, annotation and load-balancer label in one write; then the condition. */
  cordon(node: NodeIdentity, mark: DepartingMark): Promise<MarkResult>;
  /**
   * Takes back what `mark` wrote, where the annotation names `departure`. A node that was cordoned
   * before we came stays cordoned: `mark` keeps that in the same write.
   */
  uncordon(node: UnmarkTarget): Promise<MarkResult>;
  /**
   * Adds or removes the taint by which the scheduler prefers other nodes. A node that departs, or
   * whose machine is another by now, is left as it is.
   */
  markSoon(node: NodeIdentity, to: SoonStanding): Promise<MarkResult>;
  /** Deletes the Node object, with its uid as precondition. */
  remove(node: NodeIdentity): Promise<MarkResult>;
}

export interface DepartingMark {
  /** The name of the Departure. */
  readonly departure: string;
  readonly cause: Cause;
  /** For the node condition `Departing`: one sentence with the deadline. */
  readonly message: string;
  /** In a rush the soonest goes first. */
  readonly dueAt?: Instant | undefined;
  /**
   * Only what stands already is written again: a node without the departure's mark gets none, and
   * is `Gone`.
   */
  readonly renews?: boolean | undefined;
  /**
   * The node as a watch has shown it. The mark is then tried without a look before it; where any of
   * this is no longer so, the server refuses, and the node is read as ever.
   */
  readonly seen?: NodeFacts | undefined;
}

export interface UnmarkTarget {
  readonly name: string;
  readonly uid: string;
  readonly departure: string;
}

export type MarkResult =
  | { readonly kind: "Done" }
  /** No node of that name, or its uid is another: for us it is gone. */
  | { readonly kind: "Gone" }
  /** The node is there with another machine or boot behind it; nothing was written. */
  | { readonly kind: "Mismatch"; readonly found: Exclude<IdentityMatch, "Same"> }
  /** The mark of another departure is on it, of this name; nothing was written. */
  | { readonly kind: "NotOurs"; readonly departure: string };
