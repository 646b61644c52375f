import type { ModelObject } from "../api/model-object.ts";
import type { ModelStore } from "../api/object-store.ts";
import type { StoredChange } from "../api/watch-history.ts";
import { keyOf } from "./cluster-object.ts";

/** Which objects of one storage belong to which owner, by the owner's uid. */
export class OwnerIndex {
  readonly #byOwner = new Map<string, Map<string, ModelObject>>();

  constructor(store: ModelStore, storage: string) {
    const collection = store.collection(storage);
    for (const object of collection.all()) this.#add(object);
    collection.subscribe((change) => this.#follow(change));
  }

  /** In the order in which they came to be. */
  ownedBy(uid: string): readonly ModelObject[] {
    const owned = this.#byOwner.get(uid);
    return owned ? [...owned.values()] : [];
  }

  #follow(change: StoredChange): void {
    if (change.type === "DELETED") this.#remove(change.object);
    else this.#add(change.object);
  }

  #add(object: ModelObject): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const owned = this.#byOwner.get(uid) ?? new Map<string, ModelObject>();
      this.#byOwner.set(uid, owned.set(keyOf(object), object));
    }
  }

  #remove(object: ModelObject): void {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const owned = this.#byOwner.get(uid);
      owned?.delete(keyOf(object));
      if (owned?.size === 0) this.#byOwner.delete(uid);
    }
  }
}
