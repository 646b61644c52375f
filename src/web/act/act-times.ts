import { instantOfLocal, isSameDay, nextHour } from "../browser.ts";
import type { Words } from "../words/words.ts";
import type { NodeAct, PolicyAct } from "./act-buttons.tsx";

/** An instant; null for "now" or "indefinitely"; or a day and time that are still being typed. */
export type Chosen = number | null | "Unfinished";

export interface Times {
  /** When to start, or until when to hold. */
  readonly at: Chosen;
  readonly by: Chosen;
}

/** The contents of a field for a day and a time. A partial time is invalid, but not empty. */
export function chosenIn(field: {
  readonly value: string;
  readonly validity: { readonly badInput: boolean };
}): Chosen {
  return field.validity.badInput ? "Unfinished" : (instantOfLocal(field.value) ?? null);
}

/** Undefined until both are complete; a freeze must have an end. */
export function wholeTimes(
  kind: NodeAct | PolicyAct,
  { at, by }: Times,
): { readonly at: number | null; readonly by: number | null } | undefined {
  if (at === "Unfinished" || by === "Unfinished") return undefined;
  return kind === "Freeze" && at === null ? undefined : { at, by };
}

/** The next two times that people usually mean; at night "tomorrow morning" is still today. */
export function mornings(now: number, words: Words): readonly (readonly [string, number])[] {
  const next = nextHour(now, 9);
  return [
    [isSameDay(next, now) ? words.todayMorning : words.tomorrowMorning, next],
    [words.mondayMorning, nextHour(now, 9, 1)],
  ];
}
