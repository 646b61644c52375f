import { isReady } from "../api/evict-pod.ts";
import { jsonEqual } from "../api/json-equal.ts";
import type { ModelObject } from "../api/model-object.ts";
import {
  controllerOf,
  isActive,
  keyOf,
  type PodObject,
  type WorkloadObject,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";
import type { OwnerIndex } from "./owner-index.ts";
import { podFromTemplate } from "./pod-from-template.ts";

const storage = "replicasets.apps";

/** The keys of the owner of a pod, where the owner is of the kind. */
export function ownerKeys(object: ModelObject, kind: string): readonly string[] {
  const owner = controllerOf(object);
  if (owner?.kind !== kind) return [];
  return [`${object.metadata.namespace ?? ""}/${owner.name}`];
}

/** Keeps as many active pods as each ReplicaSet wants. */
export class ReplicaSetController implements ModelController {
  readonly name = "replicaset";
  readonly concerns = {
    [storage]: ({ object }: { object: ModelObject }) => [keyOf(object)],
    pods: ({ object }: { object: ModelObject }) => ownerKeys(object, "ReplicaSet"),
  };
  readonly #loop: ControllerLoop;
  readonly #pods: OwnerIndex;

  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    this.#loop = loop;
    this.#pods = pods;
  }

  reconcile(key: string): void {
    const set = this.#loop.get<WorkloadObject>(storage, key);
    if (!set || set.metadata.deletionTimestamp !== undefined) return;
    const pods = this.#pods.ownedBy(set.metadata.uid) as readonly PodObject[];
    const active = pods.filter(isActive);
    this.#writeStatus(set, active);
    const missing = (set.spec.replicas ?? 1) - active.length;
    if (missing > 0) this.#create(set, missing);
    if (missing < 0) this.#delete(active, -missing);
  }

  #create(set: WorkloadObject, count: number): void {
    const { name, namespace = "" } = set.metadata;
    const body = podFromTemplate(set, { template: set.spec.template, name: `${name}-` });
    for (let made = 0; made < count; made += 1) {
      this.#loop.create({ type: this.#loop.type("v1", "pods"), namespace, body });
    }
  }

  /** Those that serve nobody first, then the youngest. */
  #delete(active: readonly PodObject[], count: number): void {
    const order = active.toSorted(
      (a, b) =>
        Number(isReady(a)) - Number(isReady(b)) ||
        Number(b.metadata.resourceVersion) - Number(a.metadata.resourceVersion),
    );
    const type = this.#loop.type("v1", "pods");
    for (const pod of order.slice(0, count)) this.#loop.delete(pod, { type });
  }

  #writeStatus(set: WorkloadObject, active: readonly PodObject[]): void {
    const ready = active.filter(isReady).length;
    const status = {
      replicas: active.length,
      fullyLabeledReplicas: active.length,
      readyReplicas: ready,
      availableReplicas: ready,
      observedGeneration: set.metadata.generation,
    };
    if (!jsonEqual(status, set.status)) this.#loop.put(storage, { ...set, status });
  }
}
