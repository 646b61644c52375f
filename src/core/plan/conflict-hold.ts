import { type Departure, mayHoldBudgets } from "../departure/departure.ts";
import { conflictHold, conflictWith, type RunningDrain } from "../departure/drain-reason.ts";
import type { GateHold } from "../limits/gate.ts";
import { type Instant, minutes, plus } from "../time/time.ts";

/**
 * Pods and budgets change while a departure waits, and neither is watched: it starts again after
 * this long, which looks at them, whatever its record says.
 */
const lookAgainMs = minutes(10);

/** The drains that hold budgets, as far as the Departures show. */
export function drainsUnderWay(departures: readonly Departure[]): readonly RunningDrain[] {
  return departures.flatMap(({ name, status: { phase, demands } }) =>
    demands !== undefined && mayHoldBudgets(phase) ? [{ name, demands }] : [],
  );
}

/**
 * Whether a departure that was held for another drain would still complete a cycle of drains that
 * wait for each other; undefined if it would not, or was held for something else.
 */
export function standingConflict(
  { status }: Departure,
  { drains, now }: { readonly drains: readonly RunningDrain[]; readonly now: Instant },
): GateHold | undefined {
  const { phase, demands, timeline } = status;
  if (phase !== "Held" || demands === undefined) return undefined;
  // Since its last start, the hold may have been noted several times.
  const started = timeline.findLastIndex(({ step }) => step === "Preparing");
  const heldAt = timeline.slice(started + 1).find(({ step }) => step === "Held")?.at;
  const retryAt = heldAt === undefined ? now : plus(heldAt, lookAgainMs);
  const conflict = retryAt <= now ? undefined : conflictWith(drains, { demands });
  return conflict && { kind: "Held", ...conflictHold(conflict), retryAt };
}
