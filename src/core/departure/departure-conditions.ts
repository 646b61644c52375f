import type { Instant } from "../time/time.ts";
import type { DepartureStatus, Phase } from "./departure.ts";

/** The conditions of a Departure, in the order in which they usually become true. */
const conditionTypes = ["Scheduled", "Held", "Draining", "Drained", "Released", "Ended"] as const;

export type ConditionType = (typeof conditionTypes)[number];

export interface DepartureCondition {
  readonly type: ConditionType;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime?: Instant | undefined;
}

/** A phase that the departure was in. */
interface Stay {
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

const isTrue: Readonly<Record<ConditionType, (stay: Stay) => boolean>> = {
  Scheduled: ({ phase }) => phase === "Scheduled",
  Held: ({ phase }) => phase === "Held",
  Draining: ({ phase }) => phase === "Draining",
  Drained: ({ isDrained }) => isDrained,
  // All that ends a departure in Releasing is that its machine ended, by us or by the cloud.
  Released: ({ phase, after }) => phase === "Ended" && after === "Releasing",
  Ended: ({ phase }) => phase === "Ended",
};

/**
 * The conditions of a departure, for `kubectl wait --for=condition=Ended`. They follow from the
 * rest of its status, so that no writer can forget one.
 */
export function conditionsOf(status: DepartureStatus): readonly DepartureCondition[] {
  const stays = staysOf(status);
  const present = { reason: status.reason ?? status.phase, message: status.message ?? "" };
  const drainEnd = drainEndOf(stays);
  return conditionTypes.map((type) => {
    const told = stays.map(isTrue[type]);
    const holds = told.at(-1) === true;
    return {
      type,
      status: holds ? "True" : "False",
      ...(type === "Drained" && drainEnd !== undefined ? drainEnd : present),
      lastTransitionTime: stays[told.lastIndexOf(!holds) + 1]?.at,
    };
  });
}

/** The phases in order, from the timeline. */
function staysOf(status: DepartureStatus): readonly Stay[] {
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

/** How the drain ended, if it was not undone since. */
function drainEndOf(
  stays: readonly Stay[],
): Pick<DepartureCondition, "reason" | "message"> | undefined {
  const last = stays.findLast(({ phase }) => phase !== "Ended");
  if (last?.phase !== "Releasing" || last.event === undefined) return undefined;
  return { reason: last.event, message: last.message ?? "" };
}

const phases: Readonly<Record<Phase, true>> = {
  ...{ Scheduled: true, Held: true, Preparing: true, Draining: true },
  ...{ Releasing: true, RollingBack: true, Ended: true },
};

function isPhase(step: string): step is Phase {
  return Object.hasOwn(phases, step);
}
