import { type Departure, isLive, mayHoldBudgets } from "../../core/departure/departure.ts";
import {
  type BudgetDemand,
  conflictWith,
  contestable,
  type Demanding,
} from "../../core/departure/drain-conflict.ts";

/**
 * Which drains run, so that one that could block another waits until that one is over. What each
 * asks of budgets is in its Departure's status; this knows it before the watch shows it, and knows
 * sooner that a drain is over.
 */
export class RunningDrains {
  readonly #running = new Map<string, readonly BudgetDemand[]>();
  readonly #over = new Set<string>();
  readonly #listeners = new Set<() => void>();

  /**
   * As in `n1-3f2a, over shop/web and shop/cache`; undefined where nothing stands in the way.
   * `known` are all departures: one that is not among them any more holds nothing.
   */
  conflictOf(
    departure: Departure,
    plan: Demanding,
    known: readonly Departure[],
  ): string | undefined {
    this.forget(known);
    const running = known
      .filter(({ uid }) => uid !== departure.uid && !this.#over.has(uid))
      .map((other) => ({ name: other.name, demands: this.#demandsOf(other) }));
    const found = conflictWith(running, plan);
    return found && `${found.drains.join(" and ")}, over ${found.budgets.join(" and ")}`;
  }

  /** Gives what the departure holds from now on: what it asked for first counts. */
  enter(departure: Departure, plan: Demanding): readonly BudgetDemand[] {
    const { uid, status } = departure;
    const held = this.#running.get(uid) ?? status.demands ?? contestable(plan.demands);
    this.#running.set(uid, held);
    this.#over.delete(uid);
    return held;
  }

  leave({ uid }: Departure): void {
    this.#over.add(uid);
    if (!this.#running.delete(uid)) return;
    for (const listener of this.#listeners) listener();
  }

  onLeave(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Drops what is held of departures that are not among `known`, all there are, any more. */
  forget(known: readonly Departure[]): void {
    if (this.#over.size + this.#running.size === 0) return;
    const there = new Set(known.map(({ uid }) => uid));
    for (const uid of [...this.#over, ...this.#running.keys()]) {
      if (there.has(uid)) continue;
      this.#over.delete(uid);
      this.#running.delete(uid);
    }
  }

  #demandsOf(departure: Departure): readonly BudgetDemand[] {
    if (!isLive(departure)) return [];
    const recorded = mayHoldBudgets(departure.status.phase) ? departure.status.demands : undefined;
    return this.#running.get(departure.uid) ?? recorded ?? [];
  }
}
