import { type Cause, isVoluntary, type Outcome, type Phase } from "./departure.ts";
import type { PhaseEvent } from "./phase.ts";

/** Why a departure is rolled back; `Fault`: its machine could not be released. */
export type Undoing = "GaveUp" | "Fault" | "Cancelled" | "MachineReplaced";

export interface OutcomeFacts {
  readonly cause: Cause;
  /** The phase in which it ended, and the event that ended it. */
  readonly phase: Phase;
  readonly event: PhaseEvent;
  /** The event that began the roll-back, where there was one. */
  readonly undoneBy?: Undoing | undefined;
  /** Whether a notice turned a planned departure into a forced one. */
  readonly noticed: boolean;
  readonly podsForced: number;
  readonly podsLeft: number;
}

/**
 * The one outcome of a departure.
 * `Preempted`: the cloud took the node, after a notice or without, or had us let it go; `Expired`:
 * the same, with pods still on it; `Forced`: we let it go, but pods had to be deleted past their
 * budget or were left.
 */
export function outcomeOf(facts: OutcomeFacts): Outcome {
  const takenBack = facts.event === "Cancelled" || facts.event === "Withdrawn";
  if (takenBack || facts.undoneBy === "Cancelled") return "Cancelled";
  if (facts.event === "RolledBack" && facts.undoneBy === "GaveUp") return "RolledBack";
  if (facts.event === "RolledBack" && facts.undoneBy === "Fault") return "Failed";
  const byCloud = facts.noticed || !isVoluntary(facts.cause);
  if (byCloud || takenByCloud(facts)) return facts.podsLeft > 0 ? "Expired" : "Preempted";
  return facts.podsForced > 0 || facts.podsLeft > 0 ? "Forced" : "Planned";
}

/** While we release a machine its node is meant to disappear; at any other time the cloud took it. */
function takenByCloud(facts: OutcomeFacts): boolean {
  if (facts.undoneBy === "MachineReplaced") return true;
  const vanished = facts.event === "NodeGone" || facts.event === "MachineReplaced";
  return vanished && facts.phase !== "Releasing";
}
