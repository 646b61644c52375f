import type { NewDeparture } from "../core/departure/decision.ts";
import type { DepartureMove } from "../core/departure/depart-request.ts";
import type { Departure, DepartureStatus } from "../core/departure/departure.ts";
import type { NoticeUpdate } from "../core/notice/notice-merge.ts";
import type { Instant } from "../core/time/time.ts";

/**
 * Stores Departures in the cluster. Every write carries the resourceVersion that the decision was
 * based on (fencing): on `Conflict` somebody else has written since, and the caller has to read
 * again.
 */
export interface DepartureStore {
  create(departure: NewDeparture): Promise<StoreResult>;
  /** Reschedules a departure that has not started. */
  move(departure: Departure, to: DepartureMove): Promise<StoreResult>;
  /** Turns a planned departure into an interruption: sets the notice's cause and deadline. */
  notice(departure: Departure, update: NoticeUpdate): Promise<StoreResult>;
  /** Clears the planned instant, which a notice has superseded. */
  dropInstant(departure: Departure): Promise<StoreResult>;
  /** Marks that the cloud has cancelled the notice. */
  withdraw(departure: Departure, at: Instant): Promise<StoreResult>;
  /** Replaces the status. During a burst it yields to cordons and evictions. */
  record(departure: Departure, write: StatusWrite): Promise<StoreResult>;
  /** Reads one from the API server, not from the watch cache. */
  read(name: string): Promise<StoreResult>;
  remove(departure: Departure): Promise<StoreResult>;
}

export interface StatusWrite {
  /** Evaluated when the request is sent, which during a burst can be well after the call. */
  readonly status: () => DepartureStatus;
  /** When it aborts, the write overtakes pending evictions. */
  readonly hurry?: AbortSignal | undefined;
}

export type StoreResult =
  | { readonly kind: "Done"; readonly departure: Departure }
  | { readonly kind: "Conflict" }
  | { readonly kind: "Gone" };
