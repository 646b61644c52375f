import type { Millis } from "../core/time/time.ts";

/**
 * What the controllers' Lease shows to somebody who does not stand for it. Whether its holder lives is
 * judged by how long the version stays the same here, never by the instants that are written in it.
 */
export interface LeaderSight {
  readonly version: string;
  /** False: it was given up, and nobody has taken it. */
  readonly held: boolean;
  /** How long after a renewal another may take it. */
  readonly durationMs: Millis;
}
