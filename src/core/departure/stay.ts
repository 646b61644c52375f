import type { Instant } from "../time/time.ts";
import type { DepartureStatus, Phase } from "./departure.ts";

/** A phase that a departure was in. */
export interface Stay {
  readonly phase: Phase;
  readonly at?: Instant | undefined;
  /** The phase before it. */
  readonly after?: Phase | undefined;
  /** The event that led to it, and its message. */
  readonly event?: string | undefined;
  readonly message?: string | undefined;
  /** Whether no pods remained at the end of the drain, and the departure was not undone since. */
  readonly isDrained: boolean;
}

/** The phases in order, from the timeline. */
export function staysOf(status: DepartureStatus): readonly Stay[] {
  const { timeline } = status;
  const stays: Stay[] = [{ phase: "Scheduled", at: timeline[0]?.at, isDrained: false }];
  for (const { at, step, result } of timeline) {
    if (isPhase(step)) stays.push(stayAfter(stays.at(-1), { phase: step, at, result }));
  }
  // A status that was not written by this controller may lack the entry of its phase.
  if (stays.at(-1)?.phase !== status.phase) {
    const at = status.endedAt ?? timeline.at(-1)?.at;
    stays.push(stayAfter(stays.at(-1), { phase: status.phase, at, result: "" }));
  }
  return stays;
}

function stayAfter(
  before: Stay | undefined,
  entry: { readonly phase: Phase; readonly at: Instant | undefined; readonly result: string },
): Stay {
  const { phase, at, result } = entry;
  const [, event, message] = /^([A-Za-z]+): (.*)$/s.exec(result) ?? [];
  const wasDrained = phase === "Ended" && before?.isDrained === true;
  const isDrained = phase === "Releasing" ? event === "Drained" : wasDrained;
  return { phase, at, after: before?.phase, event, message, isDrained };
}

const phases: Readonly<Record<Phase, true>> = {
  ...{ Scheduled: true, Held: true, Preparing: true, Draining: true },
  ...{ Releasing: true, RollingBack: true, Ended: true },
};

function isPhase(step: string): step is Phase {
  return Object.hasOwn(phases, step);
}
