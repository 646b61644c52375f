import type { Instant } from "../../core/time/time.ts";

/**
 * What a person writes by hand, as themselves. Each write says what they saw when they decided,
 * and fails as `Changed` where that is not so any more; it carries the version that was read, so
 * that of two at once one is refused. What the server refuses is thrown as `LastcallError`.
 */
export interface OperatorWrites {
  /** The node's annotation `lastcall.dev/hold`; null takes it away. */
  hold(node: HeldNode, value: string | null): Promise<OperatorResult>;
  /** `gates.freezeUntil` of a policy; null takes it away. */
  freeze(policy: FrozenPolicy, until: Instant | null): Promise<OperatorResult>;
  /** Deletes a Departure, by which its controller takes it back. */
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
  /** Somebody has changed it since; `found` says what is there now. */
  | { readonly kind: "Changed"; readonly found: string };
