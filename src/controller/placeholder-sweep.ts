import type { Clock } from "../contracts/clock.ts";
import type { Placeholders } from "../contracts/cluster-capacity.ts";
import type { Departure } from "../core/departure/departure.ts";
import { orphanPlaceholders } from "../core/drain/placeholder-plan.ts";
import { type Millis, minutes } from "../core/time/time.ts";
import type { Executor } from "./executor.ts";

/** Placeholders are swept by their own runs; this is for those that a crash has left. */
const sweepEveryMs: Millis = minutes(10);

export interface SweepTools {
  readonly placeholders: Placeholders;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** Deletes placeholders without a live departure: when the lead is taken, and now and then. */
export class PlaceholderSweep {
  readonly #tools: SweepTools;
  #sweptMs = Number.NEGATIVE_INFINITY;

  constructor(tools: SweepTools) {
    this.#tools = tools;
  }

  /** `departures` is asked after the list, so that it is the newer of the two. */
  async run(departures: () => readonly Departure[]): Promise<void> {
    const { placeholders, executor, clock } = this.#tools;
    if (clock.monotonic() - this.#sweptMs < sweepEveryMs) return;
    this.#sweptMs = clock.monotonic();
    const found = await placeholders.list();
    for (const name of orphanPlaceholders(found, departures())) {
      await executor.removePlaceholder(name);
      executor.telemetry.log.warn("orphaned-placeholder-removed", { name });
    }
  }
}
