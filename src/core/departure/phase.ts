import type { Phase } from "./departure.ts";

/** What can happen to a departure. */
export const phaseEvents = [
  /** Its time has come and nothing holds it back. */
  "Due",
  /** A window, budget, gate or person holds it back. */
  "Blocked",
  "Unblocked",
  /** The cloud has spoken: from now on its deadline counts. */
  "Noticed",
  /** The node is marked, and what had to come first is there. */
  "Prepared",
  "Drained",
  /** Time is up with pods left, and the policy or the cloud says to go on. */
  "CutShort",
  /** Time is up, or a fault will not go away, and the policy says to undo. */
  "GaveUp",
  "Released",
  "RolledBack",
  "Cancelled",
  /** The cloud took its notice back; unlike a person it may do so after the drain, too. */
  "Withdrawn",
  "NodeGone",
  /** The Node object lives on with another machine behind it. */
  "MachineReplaced",
] as const;

export type PhaseEvent = (typeof phaseEvents)[number];

/**
 * Phase x event. A pair that is not here changes nothing: the event came too late (a cancel while
 * the machine is already being released) or does not concern the phase.
 * `test/core/departure/phase.test.ts` walks every path and proves that Ended can be reached from
 * everywhere.
 */
const table: Readonly<Record<Phase, Readonly<Partial<Record<PhaseEvent, Phase>>>>> = {
  Scheduled: {
    Due: "Preparing",
    Blocked: "Held",
    Noticed: "Preparing",
    Cancelled: "Ended",
    Withdrawn: "Ended",
    NodeGone: "Ended",
    MachineReplaced: "Ended",
  },
  Held: {
    Due: "Preparing",
    Unblocked: "Scheduled",
    Noticed: "Preparing",
    Cancelled: "Ended",
    Withdrawn: "Ended",
    NodeGone: "Ended",
    MachineReplaced: "Ended",
  },
  Preparing: {
    // The last look before the mark; one that was begun before may have left it.
    Blocked: "Held",
    Prepared: "Draining",
    GaveUp: "RollingBack",
    Cancelled: "RollingBack",
    Withdrawn: "RollingBack",
    NodeGone: "Ended",
    MachineReplaced: "RollingBack",
  },
  Draining: {
    Drained: "Releasing",
    CutShort: "Releasing",
    GaveUp: "RollingBack",
    Cancelled: "RollingBack",
    Withdrawn: "RollingBack",
    NodeGone: "Ended",
    MachineReplaced: "RollingBack",
  },
  Releasing: {
    Released: "Ended",
    GaveUp: "RollingBack",
    // Only while the cloud is waited for: a released machine does not come back.
    Withdrawn: "RollingBack",
    NodeGone: "Ended",
    // The group was quicker than we: the new machine has taken the old Node object, cordon and all.
    MachineReplaced: "Ended",
  },
  RollingBack: {
    RolledBack: "Ended",
    Noticed: "Preparing",
    NodeGone: "Ended",
  },
  Ended: {},
};

/** The phase that `event` leads to from `phase`; undefined where it changes nothing. */
export function phaseAfter(phase: Phase, event: PhaseEvent): Phase | undefined {
  return table[phase][event];
}
