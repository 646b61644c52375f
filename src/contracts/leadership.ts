import type { Millis } from "../core/time/time.ts";

/**
 * Who acts. One replica leads at a time; a replica that cannot be sure any more acts no more.
 * Made by `src/kube/lease/leader-lease.ts`; a controller without leader election leads always.
 */
export interface Leadership {
  /**
   * Whether this replica may act now. Asked again just before each act: it turns false by the
   * clock alone, before another replica can take the lead.
   */
  isLeader(): boolean;

  /**
   * Seeks the lead, leads, and seeks it again when it is lost, until the signal aborts; then it
   * ends the duty, gives the lead up and resolves. Also resolves when the duty ends by itself.
   * Rejects with what the duty threw, or with `LastcallError` where the lead can never be had
   * (`RIGHT_MISSING`, `NOT_FOUND` for the namespace).
   */
  run(duty: LeaderDuty, signal: AbortSignal): Promise<void>;
}

export interface LeaderDuty {
  /**
   * The work of the leader. `signal` aborts when the lead is lost (its reason is `LEASE_LOST`) or
   * given up; the lead is not sought again before the promise has settled.
   */
  onLeading(signal: AbortSignal): Promise<void>;
  /** Told when another replica is seen to lead; undefined when nobody does. */
  onHolder?(identity: string | undefined): void;
}

/**
 * What the controllers' Lease shows to somebody who does not stand for it. Whether its holder lives
 * is judged by how long the version stays the same here, never by the instants that are written in
 * it.
 */
export interface ObservedLease {
  readonly version: string;
  /** False: it was given up, and nobody has taken it. */
  readonly held: boolean;
  /** How long after a renewal another may take it. */
  readonly durationMs: Millis;
}
