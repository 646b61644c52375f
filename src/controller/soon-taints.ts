import type { Clock } from "../contracts/clock.ts";
import type { Snapshot } from "../core/departure/decision.ts";
import { type SoonChange, soonChanges } from "../core/plan/departing-soon.ts";
import type { FleetPlan } from "../core/plan/fleet-plan.ts";
import type { Instant, Millis } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";
import type { Executor } from "./executor.ts";

export interface SoonTaintsOptions {
  readonly executor: Executor;
  readonly clock: Clock;
  /** How long before its departure a node gets the taint; undefined: none has it. */
  readonly leadMs: Millis | undefined;
  /** Asks for another pass. */
  readonly wake: () => void;
}

/**
 * The soft taint of the nodes that are next (docs/adr/0011-soft-taint.md). It is best
 * effort: it is written one node after the other beside the loop, and neither the plan nor a notice
 * waits for it.
 */
export class SoonTaints {
  readonly #options: SoonTaintsOptions;
  #isWriting = false;
  #isOutdated = false;

  constructor(options: SoonTaintsOptions) {
    this.#options = options;
  }

  /** Begins to write what has changed; gives the instant at which there is more to write. */
  follow(plan: FleetPlan, snapshot: Snapshot, signal: AbortSignal): Instant | undefined {
    const { clock, leadMs } = this.#options;
    const { changes, askAgainAt } = soonChanges({ ...snapshot, plan, at: clock.now(), leadMs });
    if (this.#isWriting) this.#isOutdated = true;
    else if (changes.length > 0) void this.#write(changes, signal);
    return askAgainAt;
  }

  async #write(changes: readonly SoonChange[], signal: AbortSignal): Promise<void> {
    const { executor, wake } = this.#options;
    this.#isWriting = true;
    this.#isOutdated = false;
    for (const { node, to } of changes) {
      if (signal.aborted) break;
      try {
        await executor.markSoon(node, to);
      } catch (error) {
        // The next pass tries again.
        const told = { node: node.name, error: messageOf(error) };
        if (!signal.aborted) executor.telemetry.log.warn("soft-taint-not-written", told);
      }
    }
    this.#isWriting = false;
    if (this.#isOutdated) wake();
  }
}
