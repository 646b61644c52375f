import type { ModelObject } from "../api/model-object.ts";
import type { ModelStore } from "../api/object-store.ts";
import { budgetSelects, budgetStorage } from "../api/pod-budget.ts";
import type { StoredChange } from "../api/watch-history.ts";
import { keyOf, type PodObject } from "./cluster-object.ts";

/** Which pods each budget selects; kept up with every change, so that nothing is listed again. */
export class BudgetMembers {
  readonly #store: ModelStore;
  readonly #members = new Map<string, Map<string, PodObject>>();

  constructor(store: ModelStore) {
    this.#store = store;
    for (const budget of store.collection(budgetStorage).all()) this.#fill(budget);
    store.collection(budgetStorage).subscribe((change) => this.#followBudget(change));
    store.collection("pods").subscribe((change) => this.#followPod(change));
  }

  podsOf(budgetKey: string): Iterable<PodObject> {
    return this.#members.get(budgetKey)?.values() ?? [];
  }

  /** The budgets that select the pod of a change, or did so before. */
  budgetsOf(change: StoredChange): readonly string[] {
    const { object, previous } = change;
    const keys: string[] = [];
    const namespace = object.metadata.namespace ?? "";
    for (const budget of this.#store.collection(budgetStorage).inNamespace(namespace)) {
      const selected = budgetSelects(budget, object);
      if (selected || (previous && budgetSelects(budget, previous))) keys.push(keyOf(budget));
    }
    return keys;
  }

  #followBudget({ type, object, previous }: StoredChange): void {
    if (type === "DELETED") this.#members.delete(keyOf(object));
    else if (selectorOf(object) !== selectorOf(previous)) this.#fill(object);
  }

  #followPod(change: StoredChange): void {
    const { type, object } = change;
    for (const key of this.budgetsOf(change)) {
      const [namespace, name] = key.split("/") as [string, string];
      const budget = this.#store.collection(budgetStorage).get(namespace, name);
      const stays = type !== "DELETED" && budget !== undefined && budgetSelects(budget, object);
      if (stays) this.#members.get(key)?.set(keyOf(object), object as PodObject);
      else this.#members.get(key)?.delete(keyOf(object));
    }
  }

  #fill(budget: ModelObject): void {
    const members = new Map<string, PodObject>();
    const namespace = budget.metadata.namespace ?? "";
    for (const pod of this.#store.collection("pods").inNamespace(namespace)) {
      if (budgetSelects(budget, pod)) members.set(keyOf(pod), pod as PodObject);
    }
    this.#members.set(keyOf(budget), members);
  }
}

/** Selectors are frozen and shared, so one that did not change is the same object. */
function selectorOf(budget: ModelObject | undefined): unknown {
  return (budget?.spec as { selector?: unknown } | undefined)?.selector;
}
