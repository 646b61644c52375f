import { type Instant, minutes, parseInstant, plus } from "../../core/time/time.ts";
import {
  isReady,
  jsonEqual,
  type ModelObject,
  type ModelStore,
  type StoredChange,
} from "../api/store/object-store.ts";
import {
  allowedCondition,
  budgetSelects,
  budgetStatus,
  budgetStorage,
} from "../api/write/pod-budget.ts";
import {
  controllerOf,
  keyOf,
  type PodObject,
  scaledValue,
  splitKey,
  type WorkloadObject,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";

/**
 * An evicted pod that does not start to terminate within this time counts again. Source:
 * disruption.go, DeletionTimeout.
 */
const deletionTimeout = minutes(2);

interface BudgetObject extends ModelObject {
  readonly spec: {
    readonly minAvailable?: number | string;
    readonly maxUnavailable?: number | string;
  };
}

interface Expectation {
  readonly expectedPods: number;
  readonly desiredHealthy: number;
}

/**
 * Writes the status of budgets: how many pods are expected, healthy, and may be disrupted. Source:
 * kubernetes `pkg/controller/disruption/disruption.go`.
 */
export class DisruptionController implements ModelController {
  readonly name = "disruption";
  readonly watches: ModelController["watches"];
  readonly #loop: ControllerLoop;
  readonly #members: BudgetMembers;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
    this.#members = new BudgetMembers(loop.context.store);
    const ofNamespace = ({ object }: StoredChange): readonly string[] => this.#allIn(object);
    this.watches = {
      [budgetStorage]: ({ object }) => [keyOf(object)],
      pods: (change) => this.#members.budgetsOf(change),
      "deployments.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
      "statefulsets.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
      "replicasets.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
    };
  }

  reconcile(key: string): void {
    const budget = this.#loop.get<BudgetObject>(budgetStorage, key);
    if (!budget) return;
    const pods = [...this.#members.podsOf(key)];
    const disruptedPods = this.#stillGoing(budget, pods);
    const currentHealthy = pods.filter(
      (pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        !(pod.metadata.name in disruptedPods) &&
        isReady(pod),
    ).length;
    const { expectedPods, desiredHealthy } = this.#expected(budget, pods);
    const spare = Math.max(0, currentHealthy - desiredHealthy);
    const disruptionsAllowed = expectedPods <= 0 ? 0 : spare;
    const generation = budget.metadata.generation ?? 0;
    const status = {
      observedGeneration: generation,
      disruptionsAllowed,
      currentHealthy,
      desiredHealthy,
      expectedPods,
      ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
      conditions: [allowedCondition(disruptionsAllowed, generation)],
    };
    if (!jsonEqual(status, budget.status)) this.#loop.put(budgetStorage, { ...budget, status });
  }

  /** Entries of pods that are neither gone, nor terminating, nor overdue. */
  #stillGoing(budget: BudgetObject, pods: readonly PodObject[]): Readonly<Record<string, string>> {
    const before = budgetStatus(budget).disruptedPods ?? {};
    const nowAt = this.#loop.context.clock.now();
    const kept: Record<string, string> = {};
    for (const pod of pods) {
      const evictedAt = parseInstant(before[pod.metadata.name] ?? "");
      if (evictedAt === undefined || pod.metadata.deletionTimestamp !== undefined) continue;
      const overdueAt = plus(evictedAt, deletionTimeout);
      if (overdueAt <= nowAt) continue;
      kept[pod.metadata.name] = before[pod.metadata.name] ?? "";
      this.#enqueueAt(overdueAt, keyOf(budget));
    }
    return kept;
  }

  #enqueueAt(at: Instant, key: string): void {
    const span = Math.max(0, at - this.#loop.context.clock.now());
    this.#loop.enqueueAfter(span as ReturnType<typeof minutes>, { controller: this, key });
  }

  #expected(budget: BudgetObject, pods: readonly PodObject[]): Expectation {
    const { maxUnavailable, minAvailable } = budget.spec;
    if (maxUnavailable !== undefined) {
      const total = this.#scaleOf(pods);
      const lost = scaledValue(maxUnavailable, { total, rounding: "Up" });
      return { expectedPods: total, desiredHealthy: Math.max(0, total - lost) };
    }
    if (typeof minAvailable === "number") {
      return { expectedPods: pods.length, desiredHealthy: minAvailable };
    }
    if (minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0 };
    const total = this.#scaleOf(pods);
    return {
      expectedPods: total,
      desiredHealthy: scaledValue(minAvailable, { total, rounding: "Up" }),
    };
  }

  /** The sum of the replicas that the pods' owners request; pods without an owner do not count. */
  #scaleOf(pods: readonly PodObject[]): number {
    const scales = new Map<string, number>();
    for (const pod of pods) {
      const owner = this.#topOwner(pod);
      if (owner) scales.set(owner.metadata.uid, owner.spec.replicas ?? 1);
    }
    return [...scales.values()].reduce((total, scale) => total + scale, 0);
  }

  #topOwner(pod: PodObject): WorkloadObject | undefined {
    const owner = this.#ownerOf(pod);
    if (owner?.kind !== "ReplicaSet") return owner;
    return this.#ownerOf(owner) ?? owner;
  }

  #ownerOf(object: ModelObject): WorkloadObject | undefined {
    const owner = controllerOf(object);
    const storage = scalable[owner?.kind ?? ""];
    if (!owner || storage === undefined) return undefined;
    const key = `${object.metadata.namespace ?? ""}/${owner.name}`;
    const found = this.#loop.get<WorkloadObject>(storage, key);
    return found?.metadata.uid === owner.uid ? found : undefined;
  }

  #allIn(object: ModelObject): readonly string[] {
    const { namespace } = splitKey(keyOf(object));
    return [...this.#loop.collection(budgetStorage).inNamespace(namespace)].map(keyOf);
  }
}

const scalable: Readonly<Record<string, string>> = {
  Deployment: "deployments.apps",
  ReplicaSet: "replicasets.apps",
  StatefulSet: "statefulsets.apps",
};

function scaleChanged({ object, previous }: StoredChange): boolean {
  const replicas = (one: ModelObject | undefined): unknown =>
    (one as WorkloadObject | undefined)?.spec.replicas;
  return replicas(object) !== replicas(previous);
}

/** The pods that each budget selects, updated at every change so that nothing is listed again. */
class BudgetMembers {
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

  /** The budgets that select the changed pod, or did before. */
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

/** Selectors are frozen and shared, so an unchanged one is the same object. */
function selectorOf(budget: ModelObject | undefined): unknown {
  return (budget?.spec as { selector?: unknown } | undefined)?.selector;
}
