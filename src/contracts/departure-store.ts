import type { NewDeparture } from "../core/departure/decision.ts";
import type { DepartureMove } from "../core/departure/depart-request.ts";
import type { Departure, DepartureStatus } from "../core/departure/departure.ts";
import type { NoticeUpdate } from "../core/notice/notice-merge.ts";
import type { Instant } from "../core/time/time.ts";

/**
 * Departures as they are kept in the cluster. Every write names the resourceVersion it was decided
 * upon (fencing): `Conflict` means that somebody has written since, and that the caller looks
 * again.
 */
export interface DepartureStore {
  create(departure: NewDeparture): Promise<StoreResult>;
  /** Moves a departure that has not begun. */
  move(departure: Departure, to: DepartureMove): Promise<StoreResult>;
  /** The first notice for a planned departure makes it the cloud's: its cause, and its deadline. */
  notice(departure: Departure, update: NoticeUpdate): Promise<StoreResult>;
  /** A notice has overtaken the instant for which it was planned: it names none any more. */
  dropInstant(departure: Departure): Promise<StoreResult>;
  /** The cloud has taken the notice back. */
  withdraw(departure: Departure, at: Instant): Promise<StoreResult>;
  /** Replaces the status. In a rush it stands back for cordons and evictions. */
  record(departure: Departure, write: StatusWrite): Promise<StoreResult>;
  /** Reads one afresh. */
  read(name: string): Promise<StoreResult>;
  remove(departure: Departure): Promise<StoreResult>;
}

export interface StatusWrite {
  /** Asked as the request goes out, which in a rush is a while after it was made. */
  readonly status: () => DepartureStatus;
  /** Once it aborts the write goes ahead of the evictions that wait. */
  readonly hurry?: AbortSignal | undefined;
}

export type StoreResult =
  | { readonly kind: "Done"; readonly departure: Departure }
  | { readonly kind: "Conflict" }
  | { readonly kind: "Gone" };
