import type { DepartureOrder } from "../core/decision.ts";
import type { Departure, DepartureStatus } from "../core/departure.ts";
import type { Instant } from "../core/time.ts";

/**
 * Departures as they are kept in the cluster. Every write names the resourceVersion it was decided
 * upon (fencing): `Conflict` means that somebody has written since, and that the caller looks again.
 */
export interface DepartureStore {
  create(order: DepartureOrder): Promise<StoreResult>;
  /** Moves a departure that has not begun. */
  move(departure: Departure, to: MoveOrder): Promise<StoreResult>;
  /** Replaces the status. */
  record(departure: Departure, status: DepartureStatus): Promise<StoreResult>;
  /** Reads one afresh. */
  read(name: string): Promise<StoreResult>;
  remove(departure: Departure): Promise<StoreResult>;
}

export interface MoveOrder {
  readonly departAt: Instant;
  readonly deadlineAt?: Instant | undefined;
}

export type StoreResult =
  | { readonly kind: "Done"; readonly departure: Departure }
  | { readonly kind: "Conflict" }
  | { readonly kind: "Gone" };
