import { type Instant, minutes, parseInstant, plus } from "../../core/time/time.ts";
import { isScalable } from "../api/resource-handler.ts";
import {
  isReady,
  jsonEqual,
  type ModelObject,
  type ModelStore,
  type OwnerReference,
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

interface ExpectedCounts {
  readonly expectedPods: number;
  readonly desiredHealthy: number;
}

/** Why a budget cannot be computed, in the words of the real controller. */
interface SyncFailure {
  readonly failure: string;
}

interface OwnerScale {
  readonly uid: string;
  readonly replicas: number;
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
      // A pod whose labels no longer match concerns nobody. Source: disruption.go, updatePod.
      pods: ({ object }) => this.#members.selecting(object),
      "deployments.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
      "statefulsets.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
      "replicasets.apps": (change) => (scaleChanged(change) ? ofNamespace(change) : []),
    };
  }

  reconcile(key: string): void {
    const budget = this.#loop.get<BudgetObject>(budgetStorage, key);
    if (!budget) return;
    const pods = [...this.#members.podsOf(key)];
    const expected = this.#expected(budget, pods);
    if ("failure" in expected) {
      this.#failSafe(budget, expected);
      return;
    }
    const disruptedPods = this.#stillGoing(budget, pods);
    const currentHealthy = pods.filter(
      (pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        !(pod.metadata.name in disruptedPods) &&
        isReady(pod),
    ).length;
    const { expectedPods, desiredHealthy } = expected;
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
    this.#write(budget, status);
  }

  /**
   * Allows nothing and says why; the rest of the status stays as it was, including the generation
   * that was observed. Source: disruption.go, failSafe.
   */
  #failSafe(budget: BudgetObject, { failure }: SyncFailure): void {
    const before = budgetStatus(budget);
    const condition = {
      type: "DisruptionAllowed",
      status: "False",
      reason: "SyncFailed",
      message: failure,
      observedGeneration: before.observedGeneration,
    };
    const counts = { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
    const status = { ...counts, ...before, disruptionsAllowed: 0, conditions: [condition] };
    this.#write(budget, status);
  }

  #write(budget: BudgetObject, status: object): void {
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

  #expected(budget: BudgetObject, pods: readonly PodObject[]): ExpectedCounts | SyncFailure {
    const { maxUnavailable, minAvailable } = budget.spec;
    if (maxUnavailable === undefined && minAvailable === undefined) {
      return { expectedPods: 0, desiredHealthy: 0 };
    }
    if (maxUnavailable === undefined && typeof minAvailable === "number") {
      return { expectedPods: pods.length, desiredHealthy: minAvailable };
    }
    const total = this.#scaleOf(pods);
    if (typeof total !== "number") return total;
    const amount = (value: number | string): number =>
      scaledValue(value, { total, rounding: "Up" });
    const desiredHealthy =
      maxUnavailable === undefined ? amount(minAvailable ?? 0) : total - amount(maxUnavailable);
    return { expectedPods: total, desiredHealthy: Math.max(0, desiredHealthy) };
  }

  /**
   * The sum of the replicas that the pods' owners request. Finished pods count like any other, and
   * one pod whose owner has no replicas makes the budget fail; pods without an owner are left out.
   * Source: disruption.go, getExpectedScale.
   */
  #scaleOf(pods: readonly PodObject[]): number | SyncFailure {
    const scales = new Map<string, number>();
    for (const pod of pods) {
      const owner = controllerOf(pod);
      if (owner === undefined || scales.has(owner.uid)) continue;
      const found = this.#ownerScale(pod, owner);
      if ("failure" in found) return found;
      scales.set(found.uid, found.replicas);
    }
    return [...scales.values()].reduce((total, scale) => total + scale, 0);
  }

  /** Source: disruption.go, finders: the Deployment of a ReplicaSet, or anything with a scale. */
  #ownerScale(pod: PodObject, reference: OwnerReference): OwnerScale | SyncFailure {
    const { apiVersion, kind } = reference;
    const type = this.#loop.context.registry.findKind(apiVersion, kind);
    if (type === undefined) {
      return { failure: `no matches for kind "${kind}" in version "${apiVersion}"` };
    }
    if (!isScalable(type)) {
      const resource = type.group === "" ? type.plural : `${type.plural}.${type.group}`;
      return { failure: `${resource} does not implement the scale subresource` };
    }
    const owner = this.#find(pod, reference);
    if (owner === undefined) {
      return { failure: `found no controllers for pod "${pod.metadata.name}"` };
    }
    const { metadata, spec } = this.#deploymentOf(owner) ?? owner;
    return { uid: metadata.uid, replicas: spec.replicas ?? 1 };
  }

  #deploymentOf(owner: WorkloadObject): WorkloadObject | undefined {
    const parent = controllerOf(owner);
    const isRolledOut = owner.kind === "ReplicaSet" && parent?.kind === "Deployment";
    return isRolledOut ? this.#find(owner, parent) : undefined;
  }

  /** The object that a reference means; undefined if it is gone, or another one has its name. */
  #find(object: ModelObject, reference: OwnerReference): WorkloadObject | undefined {
    const { apiVersion, kind, name, uid } = reference;
    const type = this.#loop.context.registry.findKind(apiVersion, kind);
    if (type === undefined) return undefined;
    const key = `${object.metadata.namespace ?? ""}/${name}`;
    const found = this.#loop.get<WorkloadObject>(type.storage, key);
    return found?.metadata.uid === uid ? found : undefined;
  }

  #allIn(object: ModelObject): readonly string[] {
    const { namespace } = splitKey(keyOf(object));
    return [...this.#loop.collection(budgetStorage).inNamespace(namespace)].map(keyOf);
  }
}

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

  /** The budgets that select the pod as it is now, or was before it was deleted. */
  selecting(pod: ModelObject): readonly string[] {
    const keys: string[] = [];
    const namespace = pod.metadata.namespace ?? "";
    for (const budget of this.#store.collection(budgetStorage).inNamespace(namespace)) {
      if (budgetSelects(budget, pod)) keys.push(keyOf(budget));
    }
    return keys;
  }

  #followBudget({ type, object, previous }: StoredChange): void {
    if (type === "DELETED") this.#members.delete(keyOf(object));
    else if (selectorOf(object) !== selectorOf(previous)) this.#fill(object);
  }

  #followPod(change: StoredChange): void {
    const { type, object } = change;
    const before = change.previous === undefined ? [] : this.selecting(change.previous);
    for (const key of new Set([...before, ...this.selecting(object)])) {
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
