import type { Departure } from "../core/departure.ts";
import { departuresInConflict } from "../core/drain-conflict.ts";
import type { DrainPlan } from "../core/drain-plan.ts";

interface Running {
  readonly name: string;
  /** As it was when the drain began: the budgets that it has spent since are its to hold. */
  readonly plan: DrainPlan;
}

/** Which drains run, so that one that could block another waits until that one is over. */
export class DrainTurns {
  readonly #running = new Map<string, Running>();
  readonly #listeners = new Set<() => void>();

  /** As in `n1-3f2a, over shop/web and shop/cache`; undefined where nothing stands in the way. */
  conflictOf(departure: Departure, plan: DrainPlan): string | undefined {
    for (const [uid, other] of this.#running) {
      if (uid === departure.uid) continue;
      const conflict = departuresInConflict(other.plan, plan);
      if (conflict !== undefined) return `${other.name}, over ${conflict.budgets.join(" and ")}`;
    }
    return undefined;
  }

  /** The first plan of a departure counts. */
  enter(departure: Departure, plan: DrainPlan): void {
    if (this.#running.has(departure.uid)) return;
    this.#running.set(departure.uid, { name: departure.name, plan });
  }

  leave(departure: Departure): void {
    if (!this.#running.delete(departure.uid)) return;
    for (const listener of this.#listeners) listener();
  }

  onLeave(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
