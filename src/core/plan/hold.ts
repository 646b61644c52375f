import { because, type Decision } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import type { BadPolicy } from "../policy/policy.ts";
import type { Reason } from "../reason/reason.ts";
import { earlier, type Instant } from "../time/time.ts";
import type { Pass } from "./pass.ts";

/** Why a departure is held or over. */
export interface Why {
  readonly reason: Reason;
  readonly detail?: string | undefined;
  /** When the hold ends, if known. */
  readonly retryAt?: Instant | undefined;
}

export type NoteEvent = Extract<Decision, { kind: "Note" }>["event"];

export function note(
  departure: Departure,
  event: NoteEvent,
  { reason, detail, retryAt: until }: Why,
): Decision {
  return {
    ...{ kind: "Note", departure, event, detail, until },
    ...because(reason, departure, { detail, until }),
  };
}

/**
 * Holds whose changed message is written to the status again: those until an instant that may
 * change, those that name what may be gone by now while another one holds, and those that a person
 * has to resolve, because one missing permission may follow another.
 */
const refreshedHolds: ReadonlySet<Reason> = new Set([
  "Frozen",
  "OutsideWindow",
  "OnHold",
  "BlockingPod",
  "AlertsFiring",
  "GangWorkload",
  "ReleaseImpossible",
  "DrainImpossible",
  "DeadlineFirst",
]);

/** Holds a departure that has not started. Nothing is noted if its status says so already. */
export function hold(departure: Departure, why: Why, pass: Pass): Decision[] {
  const { phase, reason, message } = departure.status;
  if (why.retryAt !== undefined) pass.wakeAt = earlier(why.retryAt, pass.wakeAt ?? why.retryAt);
  if (phase !== "Held") return [note(departure, "Blocked", why)];
  const again = note(departure, "Unblocked", why);
  const isSaid = !refreshedHolds.has(why.reason) || message === again.explain;
  // The reason or the end of the hold has changed: unblock it first, so that the status records
  // each hold.
  return reason === why.reason && isSaid ? [] : [again];
}

export function unreadableAs({ name, problem }: BadPolicy): Why {
  return { reason: "PolicyInvalid", detail: `${name}: ${problem}` };
}
