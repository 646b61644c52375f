import type { Instant } from "../time/time.ts";
import type { DepartureStatus } from "./departure.ts";
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

/** How the drain ended, if it was not undone since. */
function drainEndOf(
  stays: readonly Stay[],
): Pick<DepartureCondition, "reason" | "message"> | undefined {
  const last = stays.findLast(({ phase }) => phase !== "Ended");
  if (last?.phase !== "Releasing" || last.event === undefined) return undefined;
  return { reason: last.event, message: last.message ?? "" };
}
