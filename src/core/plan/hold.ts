import { because, type Decision } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import type { BadPolicy } from "../policy/policy.ts";
import type { Reason } from "../reason/reason.ts";
import { earlier, type Instant, minutes, plus } from "../time/time.ts";
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
 * Holds whose facts are those of the whole fleet or of a cloud: they change all the time, for every
 * departure that waits.
 */
const pacedHolds: ReadonlySet<Reason> = new Set(["FleetUnhealthy", "WaveWait", "CloudUnreachable"]);

/** The shortest time between two messages of such a hold. */
const pacedMs = minutes(10);

/**
 * Holds a departure that has not started. Nothing is noted if its status says so already; what it
 * says is replaced when it is no longer true, such as the alert, the drain or the instant that is
 * waited for.
 */
export function hold(departure: Departure, why: Why, pass: Pass): Decision[] {
  if (why.retryAt !== undefined) pass.wakeAt = earlier(why.retryAt, pass.wakeAt ?? why.retryAt);
  const held = note(departure, "Blocked", why);
  return isSaid(departure, held, pass.now) ? [] : [held];
}

function isSaid({ status }: Departure, held: Decision, now: Instant): boolean {
  const { phase, reason, message, timeline } = status;
  if (phase !== "Held" || reason !== held.reason) return false;
  // A budget's sentence is about the time when the departure was due, and that does not change.
  if (message === held.explain || reason === "BudgetSpent") return true;
  const saidAt = timeline.at(-1)?.at;
  return pacedHolds.has(reason) && saidAt !== undefined && now < plus(saidAt, pacedMs);
}

export function unreadableAs({ name, problem }: BadPolicy): Why {
  return { reason: "PolicyInvalid", detail: `${name}: ${problem}` };
}
