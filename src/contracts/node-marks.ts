import type { IdentityMatch, NodeFacts, NodeIdentity } from "../core/cluster/node.ts";
import type { SoonStanding } from "../core/plan/departing-soon.ts";
import type { Cause } from "../core/policy/cause.ts";
import type { Instant } from "../core/time/time.ts";

/**
 * Writes to Node objects. Each write checks the node's identity (uid, providerID, bootID) in the
 * same request, so that another machine that has taken over the name is never changed.
 */
export interface NodeMarks {
  /** Reads one node from the API server; undefined if it does not exist. */
  read(name: string): Promise<NodeFacts | undefined>;
  /** Sets cordon, taint, annotation and load-balancer label in one write, then the condition. */
  cordon(node: NodeIdentity, mark: DepartingMark): Promise<MarkResult>;
  /**
   * Reverts what `cordon` wrote if the annotation names `departure`. A node that was cordoned
   * before stays cordoned: `cordon` records that in the same write.
   */
  uncordon(node: UnmarkTarget): Promise<MarkResult>;
  /**
   * Adds or removes the `PreferNoSchedule` taint of nodes that depart soon. A node that is already
   * departing, or has another machine behind it, is left unchanged.
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
  /** Its deadline: during a burst, requests are sent in this order. */
  readonly dueAt?: Instant | undefined;
  /**
   * Only refreshes existing marks: a node without this departure's marks is left unchanged, and
   * the result is `Gone`.
   */
  readonly renews?: boolean | undefined;
  /**
   * The node as last seen by a watch, which saves a read: the patch tests these values, and if the
   * server refuses it because they are stale, the node is read and patched again.
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
  /** No node of that name exists, or it has another uid. */
  | { readonly kind: "Gone" }
  /** The node has another machine or boot behind it; nothing was written. */
  | { readonly kind: "Mismatch"; readonly found: Exclude<IdentityMatch, "Same"> }
  /** The node carries the marks of another departure, named here; nothing was written. */
  | { readonly kind: "NotOurs"; readonly departure: string };
