import { seconds } from "../../core/time/time.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import { keyOf, splitKey } from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";
import { OwnerIndex } from "./owned-objects.ts";

const owners = [
  "deployments.apps",
  "replicasets.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "jobs.batch",
];

/** Storages whose objects other objects own. */
const dependents = [
  { storage: "pods", apiVersion: "v1", plural: "pods" },
  { storage: "replicasets.apps", apiVersion: "apps/v1", plural: "replicasets" },
] as const;

/** Deletes what an owner leaves behind, in the background. */
export class GarbageCollector implements ModelController {
  readonly name = "garbage-collector";
  readonly watches = Object.fromEntries(
    owners.map((storage) => [
      storage,
      ({ type, object }: { type: string; object: ModelObject }) =>
        type === "DELETED" ? [object.metadata.uid] : [],
    ]),
  );
  readonly #loop: ControllerLoop;
  readonly #indexes: readonly OwnerIndex[];

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
    this.#indexes = dependents.map(({ storage }) => new OwnerIndex(loop.context.store, storage));
  }

  reconcile(uid: string): void {
    for (const [at, { apiVersion, plural }] of dependents.entries()) {
      const type = this.#loop.type(apiVersion, plural);
      for (const object of this.#indexes[at]?.ownedBy(uid) ?? []) {
        this.#loop.delete(object, { type });
      }
    }
  }
}

/** Pods of a terminating namespace take their grace, so it is looked at again. */
const recheckAfter = seconds(1);

/** Deletes the objects of a terminating namespace, and then the namespace. */
export class NamespaceController implements ModelController {
  readonly name = "namespace";
  readonly watches = {
    namespaces: ({ object }: { object: ModelObject }) =>
      object.metadata.deletionTimestamp === undefined ? [] : [keyOf(object)],
  };
  readonly #loop: ControllerLoop;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
  }

  reconcile(key: string): void {
    const namespace = this.#loop.get("namespaces", key);
    if (namespace?.metadata.deletionTimestamp === undefined) return;
    const { name } = splitKey(key);
    let left = 0;
    for (const type of this.#loop.context.registry.all().filter((one) => one.namespaced)) {
      const objects = [...this.#loop.collection(type.storage).inNamespace(name)];
      for (const object of objects) this.#loop.delete(object, { type });
      left += this.#loop.collection(type.storage).list(name).length;
    }
    if (left === 0) this.#loop.collection("namespaces").remove(namespace);
    else this.#loop.enqueueAfter(recheckAfter, { controller: this, key });
  }
}
