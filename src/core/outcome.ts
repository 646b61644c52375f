import { type Cause, isVoluntary, type Outcome } from "./departure.ts";
import type { PhaseEvent } from "./phase.ts";

export interface OutcomeFacts {
  readonly cause: Cause;
  /** The event that ended the departure. */
  readonly event: PhaseEvent;
  /** The event that began the roll-back, where there was one. */
  readonly undoneBy?: "GaveUp" | "Cancelled" | "MachineReplaced" | undefined;
  /** Whether a notice turned a planned departure into a forced one. */
  readonly noticed: boolean;
  readonly podsForced: number;
  readonly podsLeft: number;
}

/**
 * The one outcome of a departure.
 * `Preempted`: the cloud took the node, after a notice or without; `Expired`: the same, with pods
 * still on it; `Forced`: we let it go, but pods had to be deleted past their budget or were left.
 */
export function outcomeOf(facts: OutcomeFacts): Outcome {
  if (facts.event === "Cancelled" || facts.undoneBy === "Cancelled") return "Cancelled";
  if (facts.undoneBy === "GaveUp" && facts.event === "RolledBack") return "RolledBack";
  const taken = facts.event === "NodeGone" || facts.event === "MachineReplaced";
  const byCloud = facts.noticed || !isVoluntary(facts.cause);
  if (taken || facts.undoneBy === "MachineReplaced" || byCloud) {
    return facts.podsLeft > 0 ? "Expired" : "Preempted";
  }
  return facts.podsForced > 0 || facts.podsLeft > 0 ? "Forced" : "Planned";
}
