import { instantOfLocal, isSameDay, nextHour } from "../browser.ts";
import type { Words } from "../words/words.ts";
import type { NodeAct, PolicyAct } from "./act-buttons.tsx";

/** An instant; null: now, or for good; or a day and a time that are still being typed. */
export type Chosen = number | null | "Unfinished";

export interface Times {
  /** When to begin, or until when. */
  readonly at: Chosen;
  readonly by: Chosen;
}

/** What stands in a field for a day and a time. Half a time is none: it is not left out either. */
export function chosenIn(field: {
  readonly value: string;
  readonly validity: { readonly badInput: boolean };
}): Chosen {
  return field.validity.badInput ? "Unfinished" : (instantOfLocal(field.value) ?? null);
}

/** Undefined until both are whole, and a freeze has its end: one without would be none. */
export function wholeTimes(
  kind: NodeAct | PolicyAct,
  { at, by }: Times,
): { readonly at: number | null; readonly by: number | null } | undefined {
  if (at === "Unfinished" || by === "Unfinished") return undefined;
  return kind === "Freeze" && at === null ? undefined : { at, by };
}

/** The next two that people mean; at night the coming morning is that of the same day. */
export function mornings(now: number, words: Words): readonly (readonly [string, number])[] {
  const next = nextHour(now, 9);
  return [
    [isSameDay(next, now) ? words.todayMorning : words.tomorrowMorning, next],
    [words.mondayMorning, nextHour(now, 9, 1)],
  ];
}
