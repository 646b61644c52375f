import type { Millis } from "../core/time/time.ts";

/**
 * Leader election. At most one replica leads at a time; a replica that is no longer sure stops
 * acting. Implemented by `src/kube/lease/leader-lease.ts`; without leader election the controller
 * always leads.
 */
export interface Leadership {
  /**
   * Whether this replica may act now. Checked again just before each act: it becomes false by the
   * clock alone, before another replica can take over.
   */
  isLeader(): boolean;

  /**
   * Campaigns, leads, and campaigns again after losing the lead, until the signal aborts; then it
   * stops the duty, releases the lead and resolves. Also resolves when the duty ends on its own.
   * Rejects with the duty's error, or with a `LastcallError` if leading is impossible
   * (`RIGHT_MISSING`, `NOT_FOUND` for the namespace).
   */
  run(duty: LeaderDuty, signal: AbortSignal): Promise<void>;
}

export interface LeaderDuty {
  /**
   * The leader's work. `signal` aborts when the lead is lost (reason `LEASE_LOST`) or released. The
   * replica does not campaign again before the promise has settled.
   */
  onLeading(signal: AbortSignal): Promise<void>;
  /** Called when another replica is seen leading; undefined if no replica leads. */
  onHolder?(identity: string | undefined): void;
}

/**
 * The controllers' Lease as seen by an observer that does not campaign. Whether the holder is alive
 * is judged by how long the version stays unchanged here, never by the timestamps in the Lease,
 * which another machine's clock wrote.
 */
export interface ObservedLease {
  readonly version: string;
  /** False if it was released and not acquired again. */
  readonly held: boolean;
  /** How long after a renewal another replica may acquire it. */
  readonly durationMs: Millis;
}
