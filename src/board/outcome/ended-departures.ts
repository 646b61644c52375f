import { isFields, parseJson, textOf } from "../../core/json/json-field.ts";
import { formatInstant } from "../../core/time/time.ts";
import { newestFirst, type OutcomeDay, type PastDeparture } from "../stream.ts";

/** So many ended departures are shown one by one; the days count them all. */
const mostShown = 500;

/**
 * Departures that have ended, each counted once, however often it is seen: all of them by day and
 * policy, the newest one by one.
 */
export class EndedDepartures {
  readonly #ids = new Set<string>();
  readonly #days = new Map<string, OutcomeDay>();
  readonly #onNew: (past: PastDeparture) => void;
  #newest: PastDeparture[] = [];

  /** `known` are those of a history; of any other the listener is told, once. */
  constructor(
    known: readonly PastDeparture[] = [],
    onNew: (past: PastDeparture) => void = () => {},
  ) {
    this.#onNew = () => {};
    for (const past of known) this.add(past);
    this.#onNew = onNew;
  }

  /** False for one that is known already, or made nobody leave. */
  add(past: PastDeparture): boolean {
    if (this.#ids.has(past.id) || wasDropped(past)) return false;
    this.#ids.add(past.id);
    this.#count(past);
    this.#onNew(past);
    this.#newest.push(past);
    // Sorted now and then: a file may have a hundred thousand.
    if (this.#newest.length >= 2 * mostShown) this.#newest = [...this.newest()];
    return true;
  }

  /** The newest first. */
  newest(): readonly PastDeparture[] {
    return this.#newest.toSorted(newestFirst).slice(0, mostShown);
  }

  /** The newest day first. */
  days(): readonly OutcomeDay[] {
    return [...this.#days].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, day]) => day);
  }

  #count({ endedAt, policy, outcome, pods }: PastDeparture): void {
    const day = formatInstant(endedAt).slice(0, 10);
    const key = `${day} ${policy ?? ""}`;
    const before = this.#days.get(key) ?? newDay(day, policy);
    const { outcomes, podsCut, podsForced, podsLost } = before;
    this.#days.set(key, {
      ...before,
      outcomes: { ...outcomes, [outcome]: (outcomes[outcome] ?? 0) + 1 },
      podsCut: podsCut + (pods?.cut ?? 0),
      podsForced: podsForced + (pods?.forced ?? 0),
      podsLost: podsLost + (pods?.killed ?? 0) + (pods?.leftBehind ?? 0),
    });
  }
}

/**
 * Dropped by the plan before it began, as when a user's own departure took the node first: nothing
 * has departed, and nothing was cancelled.
 */
function wasDropped({ outcome, reason, startedAt }: PastDeparture): boolean {
  return outcome === "Cancelled" && reason === "PlanChanged" && startedAt === null;
}

function newDay(day: string, policy: string | null): OutcomeDay {
  return { day, policy, outcomes: {}, podsCut: 0, podsLost: 0, podsForced: 0 };
}

/** Year 9999, the last that RFC 3339 can write. */
const lastAt = 253_402_300_799_000;

/** What a history holds, a JSON object a line; a line that was cut when written is skipped. */
export function readHistory(text: string): readonly PastDeparture[] {
  return text.split("\n").flatMap((line) => {
    const { value } = parseJson(line) ?? {};
    if (!isFields(value)) return [];
    const { id, node, outcome, endedAt } = value;
    const isWhole = [id, node, outcome].every((field) => textOf(field) !== undefined);
    const isTime = typeof endedAt === "number" && Math.abs(endedAt) < lastAt;
    return isWhole && isTime ? [value as unknown as PastDeparture] : [];
  });
}

export function historyLine(past: PastDeparture): string {
  return `${JSON.stringify(past)}\n`;
}
