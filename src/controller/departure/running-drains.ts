import { type Departure, isLive, mayHoldBudgets } from "../../core/departure/departure.ts";
import {
  type BudgetDemand,
  conflictWith,
  contestable,
  type Demanding,
} from "../../core/departure/drain-conflict.ts";

/**
 * The drains that are running, so that a drain that would compete with another for a budget waits
 * for it. Each drain's demands are in its Departure's status as well; this knows them before the
 * watch shows them, and knows sooner when a drain has ended.
 */
export class RunningDrains {
  readonly #running = new Map<string, readonly BudgetDemand[]>();
  readonly #over = new Set<string>();
  readonly #listeners = new Set<() => void>();

  /**
   * Returns a conflict such as `n1-3f2a, over shop/web and shop/cache`; undefined if there is none.
   * `known` are all departures: one that is no longer among them holds nothing.
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

  /** Registers a drain. Returns what it holds of the budgets, which its first plan determines. */
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

  /** Forgets drains whose departures are no longer among `known`, which are all departures. */
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
