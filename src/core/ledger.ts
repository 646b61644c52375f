import type { Departure, DepartureStatus, TimelineEntry } from "./departure.ts";
import { explain } from "./explain.ts";
import { outcomeOf, type Undoing } from "./outcome.ts";
import { type PhaseEvent, transition } from "./phase.ts";
import type { Reason } from "./reason.ts";
import type { Instant } from "./time.ts";

/** How many entries of a departure's timeline are kept: the first ones and the newest. */
const timelineLimit = 60;

export interface Happening {
  readonly event: PhaseEvent;
  readonly reason: Reason;
  readonly detail?: string | undefined;
  readonly at: Instant;
}

/**
 * The status of a departure after `happening`; undefined where the event changes nothing in its
 * phase. The status is the ledger: what happened when, and at the end the one outcome.
 */
export function statusAfter(
  departure: Departure,
  happening: Happening,
): DepartureStatus | undefined {
  const { status } = departure;
  const step = transition(status.phase, happening.event);
  if (step === undefined) return undefined;
  const message = explain(happening.reason, {
    node: departure.node.name,
    policy: departure.policy,
    at: departure.departAt,
    deadlineAt: departure.deadlineAt,
    detail: happening.detail,
  });
  const after: DepartureStatus = {
    ...status,
    phase: step.to,
    reason: happening.reason,
    message,
    timeline: withEntry(status.timeline, {
      at: happening.at,
      step: step.to,
      result: `${happening.event}: ${message}`,
    }),
  };
  if (step.to === "Preparing") return { ...after, startedAt: status.startedAt ?? happening.at };
  return step.to === "Ended" ? ended(departure, happening, after) : after;
}

function ended(
  departure: Departure,
  happening: Happening,
  status: DepartureStatus,
): DepartureStatus {
  const before = departure.status;
  const outcome = outcomeOf({
    cause: departure.cause,
    phase: before.phase,
    event: happening.event,
    undoneBy: before.phase === "RollingBack" ? undoingOf(before) : undefined,
    noticed: departure.noticedAt !== undefined,
    podsForced: before.drain?.forced ?? 0,
    podsLeft: before.drain?.left ?? 0,
  });
  return { ...status, outcome, endedAt: happening.at };
}

/** Read back from the reason of the roll-back, so that a restarted controller knows it too. */
function undoingOf(status: DepartureStatus): Undoing {
  switch (status.reason) {
    case "CancelledByPerson":
    case "NoticeWithdrawn":
      return "Cancelled";
    case "MachineReplaced":
    case "WrongMachine":
      return "MachineReplaced";
    case "ReleaseFailed":
      return "Fault";
    default:
      return "GaveUp";
  }
}

function withEntry(
  timeline: readonly TimelineEntry[],
  entry: TimelineEntry,
): readonly TimelineEntry[] {
  const all = [...timeline, entry];
  return all.length <= timelineLimit
    ? all
    : [...all.slice(0, 10), ...all.slice(all.length - timelineLimit + 10)];
}
