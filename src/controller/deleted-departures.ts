import type { Clock } from "../contracts/clock.ts";
import type { Departure } from "../core/departure/departure.ts";
import { hours, type Millis } from "../core/time/time.ts";

/** Longer than the first pauses after a cancelled departure, which double. */
const keptMs: Millis = hours(1);

/**
 * The records of departures that somebody deleted while they were under way. Without them, the node
 * would be planned again at once, so that the deletion would not cancel it. In memory only: a new
 * leader does not know them.
 */
export class DeletedDepartures {
  readonly #clock: Clock;
  readonly #kept = new Map<string, { readonly departure: Departure; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  remember(departure: Departure): void {
    if (departure.deletionAt === undefined) return;
    const untilMs = this.#clock.monotonic() + keptMs;
    const record = { ...departure, finalizers: [], deletionAt: undefined };
    this.#kept.set(departure.uid, { departure: record, untilMs });
  }

  /** The departures, with those that were deleted a short while ago. */
  with(departures: readonly Departure[]): readonly Departure[] {
    const nowMs = this.#clock.monotonic();
    for (const [uid, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(uid);
    if (this.#kept.size === 0) return departures;
    const there = new Set(departures.map(({ uid }) => uid));
    const gone = [...this.#kept.values()].filter(({ departure }) => !there.has(departure.uid));
    return [...departures, ...gone.map(({ departure }) => departure)];
  }
}
