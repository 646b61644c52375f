import type { Instant } from "../../core/time/time.ts";

/**
 * What a person does on the board, with their own rights. Each write states what the person saw and
 * results in `Changed` if that is no longer so; it carries the resourceVersion that was read, so
 * that only one of two concurrent writes succeeds. A refusal by the server is thrown as a
 * `LastcallError`.
 */
export interface OperatorWrites {
  /** Sets the node's annotation `lastcall.dev/hold`; null removes it. */
  hold(node: HeldNode, value: string | null): Promise<OperatorResult>;
  /** Sets `gates.freezeUntil` of a policy; null removes it. */
  freeze(policy: FrozenPolicy, until: Instant | null): Promise<OperatorResult>;
  /** Deletes a Departure, which makes the controller roll it back. */
  withdraw(departure: NamedDeparture): Promise<OperatorResult>;
}

export interface HeldNode {
  readonly name: string;
  readonly uid: string;
  /** The annotation as the person saw it. */
  readonly seen: string | null;
}

export interface FrozenPolicy {
  readonly name: string;
  readonly seen: Instant | null;
}

export interface NamedDeparture {
  readonly name: string;
  readonly uid: string;
}

export type OperatorResult =
  | { readonly kind: "Done" }
  /** Somebody else has changed it since; `found` is the current value. */
  | { readonly kind: "Changed"; readonly found: string };
