import { jsonEqual } from "../api/store/json-value.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ModelStore, StoredChange } from "../api/store/object-store.ts";
import {
  controllerOf,
  keyOf,
  ownerReferenceTo,
  type TemplateObject,
  type WorkloadObject,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";

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

/** A kind of workload, and what it owns. */
interface WorkloadTraits {
  readonly kind: string;
  /** Where its objects are stored, such as `jobs.batch`. */
  readonly storage: string;
  /** Where the objects that it owns are stored. */
  readonly owned: "pods" | "replicasets.apps";
  /** Other storages whose changes concern workloads of the kind. */
  readonly alsoWatches?: ModelController["watches"];
}

/**
 * The controller of one kind of workload: a change to a workload, or to an object that it owns,
 * reconciles the workload, unless it is being deleted.
 */
export abstract class WorkloadController implements ModelController {
  readonly name: string;
  readonly watches: ModelController["watches"];
  protected readonly loop: ControllerLoop;
  readonly #storage: string;
  readonly #owned: OwnerIndex;

  constructor(loop: ControllerLoop, owned: OwnerIndex, traits: WorkloadTraits) {
    this.loop = loop;
    this.#owned = owned;
    this.#storage = traits.storage;
    this.name = traits.kind.toLowerCase();
    this.watches = {
      [traits.storage]: ({ object }) => [keyOf(object)],
      [traits.owned]: ({ object }) => ownerKeys(object, traits.kind),
      ...traits.alsoWatches,
    };
  }

  reconcile(key: string): void {
    const workload = this.loop.get<WorkloadObject>(this.#storage, key);
    if (!workload || workload.metadata.deletionTimestamp !== undefined) return;
    this.sync(workload, this.#owned.ownedBy(workload.metadata.uid));
  }

  /** Brings what the workload owns one step nearer to its spec, and writes its status. */
  protected abstract sync(workload: WorkloadObject, owned: readonly ModelObject[]): void;

  protected writeStatus(workload: WorkloadObject, status: object): void {
    if (jsonEqual(status, workload.status)) return;
    this.loop.put(this.#storage, { ...workload, status } as ModelObject);
  }
}

/** The key of the controller of an object, where it is of the kind. */
function ownerKeys(object: ModelObject, kind: string): readonly string[] {
  const owner = controllerOf(object);
  if (owner?.kind !== kind) return [];
  return [`${object.metadata.namespace ?? ""}/${owner.name}`];
}

/**
 * The body of a pod that `owner` creates from its template; `name` ends in `-` where it is a base.
 */
export function podFromTemplate(
  owner: ModelObject,
  parts: {
    readonly template: TemplateObject;
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly spec?: object;
  },
): object {
  const { template, name, labels, spec } = parts;
  const naming = name.endsWith("-") ? { generateName: name } : { name };
  return {
    metadata: {
      ...naming,
      labels: { ...template.metadata?.labels, ...labels },
      ...(template.metadata?.annotations ? { annotations: template.metadata.annotations } : {}),
      ownerReferences: [ownerReferenceTo(owner)],
    },
    spec: { ...template.spec, ...spec },
  };
}

/** A short name of a template's content, the same for the same content (FNV-1a). */
export function templateHash(template: TemplateObject): string {
  let hash = 0x811c9dc5;
  for (const letter of JSON.stringify(template)) {
    hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash.toString(36).padStart(7, "0");
}
