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

/** What the shell does on entering the next phase. Each effect is idempotent. */
export type Effect =
  | "MarkNode"
  | "DrainPods"
  | "ReleaseMachine"
  | "RemoveNode"
  | "UnmarkNode"
  | "CloseLedger";

export interface Transition {
  readonly to: Phase;
  readonly effects: readonly Effect[];
}

const begin: Transition = { to: "Preparing", effects: ["MarkNode"] };
const undo: Transition = { to: "RollingBack", effects: ["UnmarkNode"] };
const close: Transition = { to: "Ended", effects: ["CloseLedger"] };
const free: Transition = { to: "Ended", effects: ["UnmarkNode", "CloseLedger"] };

/**
 * Phase x event. A pair that is not here changes nothing: the event came too late (a cancel while
 * the machine is already being released) or does not concern the phase. `test/core/departure/phase.test.ts`
 * walks every path and proves that Ended can be reached from everywhere.
 */
const table: Readonly<Record<Phase, Readonly<Partial<Record<PhaseEvent, Transition>>>>> = {
  Scheduled: {
    Due: begin,
    Blocked: { to: "Held", effects: [] },
    Noticed: begin,
    Cancelled: close,
    Withdrawn: close,
    NodeGone: close,
    MachineReplaced: close,
  },
  Held: {
    Due: begin,
    Unblocked: { to: "Scheduled", effects: [] },
    Noticed: begin,
    Cancelled: close,
    Withdrawn: close,
    NodeGone: close,
    MachineReplaced: close,
  },
  Preparing: {
    // The last look before the mark; one that was begun before may have left it.
    Blocked: { to: "Held", effects: ["UnmarkNode"] },
    Prepared: { to: "Draining", effects: ["DrainPods"] },
    GaveUp: undo,
    Cancelled: undo,
    Withdrawn: undo,
    NodeGone: close,
    MachineReplaced: undo,
  },
  Draining: {
    Drained: { to: "Releasing", effects: ["ReleaseMachine"] },
    CutShort: { to: "Releasing", effects: ["ReleaseMachine"] },
    GaveUp: undo,
    Cancelled: undo,
    Withdrawn: undo,
    NodeGone: close,
    MachineReplaced: undo,
  },
  Releasing: {
    Released: { to: "Ended", effects: ["RemoveNode", "CloseLedger"] },
    GaveUp: undo,
    // Only while the cloud is waited for: a machine that we have let go does not come back.
    Withdrawn: undo,
    NodeGone: close,
    // The group was quicker than we: the new machine has taken the old Node object, cordon and all.
    MachineReplaced: free,
  },
  RollingBack: {
    RolledBack: close,
    Noticed: begin,
    NodeGone: close,
  },
  Ended: {},
};

/** The transition that `event` causes in `phase`; undefined where it changes nothing. */
export function transition(phase: Phase, event: PhaseEvent): Transition | undefined {
  return table[phase][event];
}
