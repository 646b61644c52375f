import type { Instant } from "../time/time.ts";
import { type DepartureStatus, hasTakenMachine } from "./departure.ts";
import { type Stay, staysOf } from "./stay.ts";

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

/** `endsMachine`: the departure has ended, and its machine with it. */
type Told = (stay: Stay, endsMachine: boolean) => boolean;

const isTrue: Readonly<Record<ConditionType, Told>> = {
  Scheduled: ({ phase }) => phase === "Scheduled",
  Held: ({ phase }) => phase === "Held",
  Draining: ({ phase }) => phase === "Draining",
  Drained: ({ phase, isDrained }, endsMachine) => isDrained && (phase !== "Ended" || endsMachine),
  // A reboot ends a departure in Releasing as well, and the machine stays.
  Released: ({ phase, after }, endsMachine) =>
    phase === "Ended" && after === "Releasing" && endsMachine,
  Ended: ({ phase }) => phase === "Ended",
};

/**
 * The conditions of a departure, for `kubectl wait --for=condition=Ended`. They follow from the
 * rest of its status, so that no writer can forget one.
 */
export function conditionsOf(status: DepartureStatus): readonly DepartureCondition[] {
  const stays = staysOf(status);
  const endsMachine = hasTakenMachine({ status });
  const present = { reason: status.reason ?? status.phase, message: status.message ?? "" };
  const isUndone = status.phase === "Ended" && !endsMachine;
  const drainEnd = isUndone ? undefined : drainEndOf(stays);
  return conditionTypes.map((type) => {
    const told = stays.map((stay) => isTrue[type](stay, endsMachine));
    const holds = told.at(-1) === true;
    return {
      type,
      status: holds ? "True" : "False",
      ...(type === "Drained" && drainEnd !== undefined ? drainEnd : present),
      lastTransitionTime: stays[told.lastIndexOf(!holds) + 1]?.at,
    };
  });
}

/** How the drain ended, if it was not undone since. */
function drainEndOf(
  stays: readonly Stay[],
): Pick<DepartureCondition, "reason" | "message"> | undefined {
  const last = stays.findLast(({ phase }) => phase !== "Ended");
  if (last?.phase !== "Releasing" || last.event === undefined) return undefined;
  return { reason: last.event, message: last.message ?? "" };
}
