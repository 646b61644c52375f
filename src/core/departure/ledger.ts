import type { Cause } from "../policy/action.ts";
import { explain, type Reason, type ReasonFacts } from "../reason/reason.ts";
import type { Instant } from "../time/time.ts";
import {
  cloudDeadline,
  type Departure,
  type DepartureStatus,
  isVoluntary,
  type Outcome,
  type Phase,
  type TimelineEntry,
} from "./departure.ts";

/** What can happen to a departure. */
export const phaseEvents = [
  /** Its time has come and nothing holds it back. */
  "Due",
  /** A window, budget, gate or person holds it back. */
  "Blocked",
  "Unblocked",
  /** The cloud has announced the end of the machine: from now on its deadline counts. */
  "Noticed",
  /** The node is marked, and everything required before the drain is done. */
  "Prepared",
  "Drained",
  /** The time is up with pods left, and by the policy or the cloud the departure continues. */
  "CutShort",
  /** The time is up or a fault persists, and the policy requires a roll-back. */
  "GaveUp",
  "Released",
  "RolledBack",
  "Cancelled",
  /** The cloud withdrew its notice. Unlike a person, it may do so after the drain as well. */
  "Withdrawn",
  "NodeGone",
  /** The Node object still exists, but another machine is behind it. */
  "MachineReplaced",
] as const;

export type PhaseEvent = (typeof phaseEvents)[number];

/**
 * Phase x event. A pair that is missing changes nothing: the event came too late (a cancellation
 * while the machine is already being released) or does not concern the phase.
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
    // Something else holds it now, or what is known of the hold has changed.
    Blocked: "Held",
    Unblocked: "Scheduled",
    Noticed: "Preparing",
    Cancelled: "Ended",
    Withdrawn: "Ended",
    NodeGone: "Ended",
    MachineReplaced: "Ended",
  },
  Preparing: {
    // From the last checks before the cordon; an earlier leader may have cordoned the node already.
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
    // Only while waiting for the cloud: a released machine does not come back.
    Cancelled: "RollingBack",
    Withdrawn: "RollingBack",
    NodeGone: "Ended",
    // The group was faster: the new machine has taken over the old Node object with its cordon.
    MachineReplaced: "Ended",
  },
  RollingBack: {
    RolledBack: "Ended",
    Noticed: "Preparing",
    NodeGone: "Ended",
  },
  Ended: {},
};

/** The phase that `event` leads to from `phase`; undefined if it changes nothing. */
export function phaseAfter(phase: Phase, event: PhaseEvent): Phase | undefined {
  return isKnownPhase(phase) ? table[phase][event] : undefined;
}

/**
 * Whether this version knows the phase. A newer one may have written another before a rollback: its
 * departure is left as it is, and counts as under way.
 */
export function isKnownPhase(phase: string): phase is Phase {
  return Object.hasOwn(table, phase);
}

/** How many entries of a timeline are kept. */
const timelineLimit = 60;

/** How many of them are the first ones. */
const firstKept = 10;

export interface PhaseChange {
  readonly event: PhaseEvent;
  readonly reason: Reason;
  readonly detail?: string | undefined;
  /** When the hold ends. */
  readonly until?: Instant | undefined;
  /** The policy to record, which otherwise is unknown once the node is gone. */
  readonly policy?: string | undefined;
  /** When the node came, which otherwise is unknown once it is gone. */
  readonly nodeCreatedAt?: Instant | undefined;
  readonly at: Instant;
}

/** The result of a phase. The instant is added when it is recorded. */
export type PhaseResult = Omit<PhaseChange, "at">;

/**
 * The status of a departure after `change`; undefined if the event has no effect in its phase. The
 * status records what happened when, and finally the outcome.
 */
export function statusAfter(
  departure: Departure,
  change: PhaseChange,
): DepartureStatus | undefined {
  const { status } = departure;
  const phase = phaseAfter(status.phase, change.event);
  if (phase === undefined) return undefined;
  const message = messageOf(departure, change);
  const { demands, leftTo, ...lasting } = status;
  const after: DepartureStatus = {
    ...lasting,
    ...(keepsDemands(phase, change) && demands !== undefined && { demands }),
    ...(phase === "Held" && change.reason === "LeftToOthers" && { leftTo: change.detail }),
    ...(phase === "Ended" && leftTo !== undefined && { leftTo }),
    phase,
    reason: change.reason,
    message,
    ...(change.policy !== undefined && { policy: change.policy }),
    ...(change.nodeCreatedAt !== undefined && { nodeCreatedAt: change.nodeCreatedAt }),
    timeline: withEntry(status.timeline, {
      at: change.at,
      step: phase,
      result: `${change.event}: ${message}`,
    }),
  };
  // A held departure has not started: it does not count for waves or hourly budgets.
  if (phase === "Held") return { ...after, startedAt: undefined };
  if (phase === "Preparing") return { ...after, startedAt: status.startedAt ?? change.at };
  return phase === "Ended" ? ended(departure, change, after) : after;
}

/** A hold for another drain is judged by what its own drain needs; a start looks again. */
function keepsDemands(phase: Phase, { reason }: PhaseChange): boolean {
  return phase === "Draining" || (phase === "Held" && reason === "ConflictWait");
}

/** A roll-back ends with the message that started it, which names the cause. */
function messageOf(departure: Departure, { event, reason, until, detail }: PhaseChange): string {
  const { message } = departure.status;
  if (event === "RolledBack" && message !== undefined) return message;
  return sentenceOf(departure, reason, { until, detail });
}

/**
 * A reason in the words that a departure's status has for it. Whoever compares what is said with
 * what is to be said takes both from here; otherwise each pass would write it again.
 */
export function sentenceOf(departure: Departure, reason: Reason, more: ReasonFacts = {}): string {
  return explain(reason, {
    node: departure.node.name,
    policy: departure.policy,
    at: departure.departAt,
    deadlineAt: reason === "Noticed" ? cloudDeadline(departure) : departure.deadlineAt,
    left: leftBehind(departure.status),
    ...more,
  });
}

/** How many pods the drain has left on the node; undefined for none. */
export function leftBehind({ drain }: DepartureStatus): number | undefined {
  return drain?.leftBehind || undefined;
}

/**
 * The status with a reason for what happens within a phase, which is added to the timeline as well;
 * undefined if the reason is already the last one.
 */
export function statusWithReason(
  departure: Departure,
  found: { readonly reason: Reason; readonly detail?: string | undefined; readonly at: Instant },
): DepartureStatus | undefined {
  const { status } = departure;
  const { reason, detail, at } = found;
  const message = sentenceOf(departure, reason, { detail });
  if (status.reason === reason && status.message === message) return undefined;
  const timeline = withEntry(status.timeline, { at, step: reason, result: message });
  return { ...status, reason, message, timeline };
}

/**
 * The status with a notice added to the timeline of a departure under way, whose phase continues.
 * Undefined if the timeline already contains it.
 */
export function statusNoticed(departure: Departure, at: Instant): DepartureStatus | undefined {
  const { status } = departure;
  const message = sentenceOf(departure, "Noticed");
  if (status.timeline.some(({ result }) => result.includes(message))) return undefined;
  const entry: TimelineEntry = { at, step: "Noticed", result: message };
  return { ...status, timeline: withEntry(status.timeline, entry) };
}

/** When a reason first appeared in the current phase; undefined if it has not. */
export function reasonSince(status: DepartureStatus, reason: Reason): Instant | undefined {
  const began = status.timeline.findLastIndex(({ step }) => step === status.phase);
  return status.timeline.slice(began + 1).find(({ step }) => step === reason)?.at;
}

/** When the departure last started; it may have been held or rolled back before. */
export function begunLastAt({ timeline }: DepartureStatus): Instant | undefined {
  return timeline.findLast(({ step }) => step === "Preparing")?.at;
}

/**
 * Whether a departure first started because it was due. The order of its ledger shows that also if
 * a notice came in the same moment, or by another clock before it.
 */
export function wasDue({ timeline }: DepartureStatus): boolean {
  const due: PhaseEvent = "Due";
  const first = timeline.find(({ step }) => step === "Preparing");
  return first?.result.startsWith(`${due}: `) === true;
}

/** Whether the release of its machine, which is recorded for that, began before a notice came. */
export function wasReleasedUnnoticed(status: DepartureStatus): boolean {
  const steps = status.timeline.map(({ step }) => step);
  const released = steps.indexOf("Releasing");
  const isBefore = released >= 0 && released < steps.indexOf("Noticed");
  return status.machine !== undefined && wasDue(status) && isBefore;
}

/** When the drain started, without the capacity reservation before it. */
export function drainBeganAt(status: DepartureStatus): Instant | undefined {
  return status.timeline.findLast(({ step }) => step === "Draining")?.at ?? status.startedAt;
}

/** Whether no pods remained when the release started, so that later pods are late ones. */
export function wasDrained({ timeline }: DepartureStatus): boolean {
  const began = timeline.findLast(({ step }) => step === "Releasing");
  return began?.result.startsWith("Drained: ") === true;
}

/** Whether capacity was reserved, so that placeholders may still exist. */
export function hasReserved(status: DepartureStatus): boolean {
  return status.timeline.some(({ step }) => step === "ReplacementWait");
}

function ended(
  departure: Departure,
  change: PhaseChange,
  status: DepartureStatus,
): DepartureStatus {
  const before = departure.status;
  const outcome = outcomeOf({
    cause: departure.cause,
    phase: before.phase,
    event: change.event,
    undoneBy: before.phase === "RollingBack" ? undoingOf(before) : undefined,
    rebooted: (before.phase === "RollingBack" ? before : change).reason === "MachineRebooted",
    noticed: departure.noticedAt !== undefined,
    withdrawn: departure.withdrawnAt !== undefined,
    podsForced: before.drain?.forced ?? 0,
    podsLeft: before.drain?.left ?? 0,
  });
  return { ...status, outcome, endedAt: change.at };
}

/** Derived from the reason of the roll-back, so that a new leader knows it as well. */
function undoingOf(status: DepartureStatus): Undoing {
  switch (status.reason) {
    case "CancelledByPerson":
    case "NoticeWithdrawn":
    case "NoticeOutlived":
      return "Cancelled";
    case "MachineReplaced":
    case "MachineRebooted":
      return "MachineReplaced";
    case "NodeGone":
    case "WrongMachine":
      return "Unknown";
    case "ReleaseFailed":
      return "Fault";
    default:
      return "GaveUp";
  }
}

/**
 * Adds an entry. In a full timeline it replaces the oldest one after the first ten whose step is
 * repeated later: when a phase began has to remain known, however often its reason changes.
 */
function withEntry(
  timeline: readonly TimelineEntry[],
  entry: TimelineEntry,
): readonly TimelineEntry[] {
  const all = [...timeline, entry];
  if (all.length <= timelineLimit) return all;
  const isRepeated = ({ step }: TimelineEntry, index: number) =>
    index >= firstKept && all.slice(index + 1).some((later) => later.step === step);
  const dropped = Math.max(all.findIndex(isRepeated), firstKept);
  return all.toSpliced(dropped, 1);
}

/**
 * Why a departure is rolled back. `Fault`: its machine could not be released. `Unknown`: its Node
 * is gone, or has another boot, and nobody knows whether its machine is gone.
 */
export type Undoing = "GaveUp" | "Fault" | "Cancelled" | "MachineReplaced" | "Unknown";

export interface OutcomeFacts {
  readonly cause: Cause;
  /** The phase in which it ended, and the event that ended it. */
  readonly phase: Phase;
  readonly event: PhaseEvent;
  /** The event that started the roll-back, if there was one. */
  readonly undoneBy?: Undoing | undefined;
  /** It ended because its machine was rebooted, and is still there. */
  readonly rebooted?: boolean | undefined;
  /** Whether a notice turned a planned departure into an interruption. */
  readonly noticed: boolean;
  /** Whether the cloud has taken that notice back. */
  readonly withdrawn?: boolean | undefined;
  readonly podsForced: number;
  readonly podsLeft: number;
}

/**
 * The outcome of a departure. `Preempted`: the cloud took the node, with or without a notice, or we
 * released it after a notice. `Expired`: the same with pods still on it. `Forced`: we released it,
 * but pods had to be deleted regardless of their budget, or remained.
 */
export function outcomeOf(facts: OutcomeFacts): Outcome {
  const isCancelled = facts.event === "Cancelled" || facts.event === "Withdrawn";
  if (isCancelled || facts.undoneBy === "Cancelled") return "Cancelled";
  if (facts.event === "RolledBack" && facts.undoneBy === "GaveUp") return "RolledBack";
  if (facts.event === "RolledBack" && facts.undoneBy === "Fault") return "Failed";
  const byCloud = facts.noticed || !isVoluntary(facts.cause);
  const isOnlyReboot = facts.rebooted === true && (!byCloud || facts.cause === "NodeShutdown");
  const isUnproven = facts.undoneBy === "Unknown" && (!byCloud || facts.withdrawn === true);
  if (isOnlyReboot || isUnproven) return "Cancelled";
  if (byCloud || takenByCloud(facts)) return facts.podsLeft > 0 ? "Expired" : "Preempted";
  return facts.podsForced > 0 || facts.podsLeft > 0 ? "Forced" : "Planned";
}

/**
 * Whether the cloud took the node: it disappeared while we were not releasing its machine.
 */
function takenByCloud(facts: OutcomeFacts): boolean {
  if (facts.undoneBy === "MachineReplaced") return true;
  const vanished = facts.event === "NodeGone" || facts.event === "MachineReplaced";
  return vanished && facts.phase !== "Releasing";
}
