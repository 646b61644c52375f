import { type DepartureObject, isChosen, phaseOf } from "../invariants/invariant.ts";

/** Planned departures that did not take place, for one reason. */
export interface Setback {
  /** `Preempted`: the cloud took the node while the departure was held. */
  readonly outcome: "RolledBack" | "Preempted";
  readonly reason: string;
  readonly departures: number;
  /** What was said of the first of them. */
  readonly example: string;
  /** The most pods that were without a node at such a time, because there was no room for them. */
  readonly podsWithoutNode: number;
}

/** By outcome and reason, the most frequent first. */
export function sumSetbacks(all: readonly Setback[]): readonly Setback[] {
  const alike = Map.groupBy(all, ({ outcome, reason }) => `${outcome} ${reason}`);
  return [...alike.values()]
    .flatMap(([first, ...others]) => (first === undefined ? [] : others.reduce(addSetback, first)))
    .toSorted((a, b) => b.departures - a.departures);
}

function addSetback(a: Setback, b: Setback): Setback {
  return {
    ...a,
    departures: a.departures + b.departures,
    podsWithoutNode: Math.max(a.podsWithoutNode, b.podsWithoutNode),
  };
}

/** Whether this change undoes a planned departure, or the cloud takes its node while it is held. */
export function setbackOf(
  now: DepartureObject,
  before: DepartureObject | undefined,
): Setback["outcome"] | undefined {
  if (before === undefined || !isChosen(before)) return undefined;
  if (!isChosen(now)) return phaseOf(before) === "Held" ? "Preempted" : undefined;
  // While it is being undone its node is still cordoned, and shows which pods found no other.
  const isUndone = phaseOf(now) === "RollingBack" && phaseOf(before) !== "RollingBack";
  return isUndone ? "RolledBack" : undefined;
}
