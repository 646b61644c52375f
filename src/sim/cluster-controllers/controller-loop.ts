import type { Millis } from "../../core/time/time.ts";
import { ApiRefusal } from "../api/api-refusal.ts";
import type { ApiContext, ResourceType } from "../api/resource-registry.ts";
import {
  jsonEqual,
  type ModelObject,
  type ModelStore,
  type ObjectCollection,
  type StoredChange,
} from "../api/store/object-store.ts";
import { type DeleteOptions, deleteObject } from "../api/write/delete-object.ts";
import { createObject } from "../api/write/write-object.ts";
import { Timers } from "../time/virtual-clock.ts";
import {
  controllerOf,
  keyOf,
  ownerReferenceTo,
  splitKey,
  type TemplateObject,
  type WorkloadObject,
} from "./cluster-object.ts";

/** One controller: what it watches, and how it reconciles one key. */
export interface ModelController {
  readonly name: string;
  /** By storage: the keys to reconcile after a change. */
  readonly watches: Readonly<Record<string, (change: StoredChange) => readonly string[]>>;
  /** Brings the cluster one step closer to the desired state of `key`. */
  reconcile(key: string): void;
}

/**
 * Runs the controllers: a change enqueues keys, and each queued key is reconciled once, in order,
 * after the writer is done. Controllers use the store and not the HTTP API.
 */
export class ControllerLoop {
  readonly context: ApiContext;
  readonly #queue = new Map<string, { controller: ModelController; key: string }>();
  readonly #timers: Timers;
  readonly #unsubscribe: (() => void)[] = [];
  #flushing = false;
  #stopped = false;

  constructor(context: ApiContext) {
    this.context = context;
    this.#timers = new Timers(context.clock);
  }

  /** Starts a controller; existing objects are reconciled first. */
  add(controller: ModelController): void {
    for (const [storage, keysOf] of Object.entries(controller.watches)) {
      const collection = this.context.store.collection(storage);
      const onChange = (change: StoredChange): void => {
        for (const key of keysOf(change)) this.enqueue(controller, key);
      };
      this.#unsubscribe.push(collection.subscribe(onChange));
      for (const object of collection.all()) {
        onChange({ type: "ADDED", object, previous: undefined, revision: 0 });
      }
    }
  }

  enqueue(controller: ModelController, key: string): void {
    if (this.#stopped) return;
    this.#queue.set(`${controller.name}|${key}`, { controller, key });
    if (this.#flushing) return;
    this.#flushing = true;
    void Promise.resolve().then(() => this.#flush());
  }

  /** Enqueues a key after a delay. */
  enqueueAfter(
    span: Millis,
    { controller, key }: { controller: ModelController; key: string },
  ): void {
    this.after(span, () => this.enqueue(controller, key));
  }

  /** Calls a function after a delay, unless the loop is stopped by then. */
  after(span: Millis, act: () => void): void {
    this.#timers.after(span, act);
  }

  stop(): void {
    this.#stopped = true;
    this.#timers.stop();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#queue.clear();
  }

  collection(storage: string): ObjectCollection {
    return this.context.store.collection(storage);
  }

  get<T extends ModelObject>(storage: string, key: string): T | undefined {
    const { namespace, name } = splitKey(key);
    return this.collection(storage).get(namespace, name) as T | undefined;
  }

  /** Creates an object; a name that is taken or a terminating namespace is not an error. */
  create(parts: { type: ResourceType; namespace: string; body: unknown }): ModelObject | undefined {
    return this.#unlessRefused(() => createObject(this.context, parts));
  }

  delete(object: ModelObject, options: DeleteOptions & { readonly type: ResourceType }): void {
    const { type, ...rest } = options;
    const { name, namespace = "" } = object.metadata;
    this.#unlessRefused(() => deleteObject(this.context, { type, namespace, name, options: rest }));
  }

  /** Writes an object's new state without the server's checks, if anything differs. */
  put(storage: string, object: ModelObject): ModelObject {
    return this.collection(storage).put(object);
  }

  type(apiVersion: string, plural: string): ResourceType {
    const found = this.context.registry.find(apiVersion, plural);
    if (!found) throw new TypeError(`the model serves no ${plural} of ${apiVersion}`);
    return found;
  }

  #unlessRefused<T>(act: () => T): T | undefined {
    try {
      return act();
    } catch (thrown) {
      if (thrown instanceof ApiRefusal) return undefined;
      throw thrown;
    }
  }

  #flush(): void {
    try {
      for (const [id, { controller, key }] of this.#queue) {
        this.#queue.delete(id);
        controller.reconcile(key);
      }
    } finally {
      this.#flushing = false;
    }
  }
}

/** Which objects of one storage belong to which owner, by the owner's uid. */
export class OwnerIndex {
  readonly #byOwner = new Map<string, Map<string, ModelObject>>();

  constructor(store: ModelStore, storage: string) {
    const collection = store.collection(storage);
    for (const object of collection.all()) this.#add(object);
    collection.subscribe((change) => this.#follow(change));
  }

  /** In the order of their creation. */
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

/** A kind of workload, and the kind of the objects that it owns. */
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

  /** Brings the workload's objects one step closer to its spec, and writes its status. */
  protected abstract sync(workload: WorkloadObject, owned: readonly ModelObject[]): void;

  protected writeStatus(workload: WorkloadObject, status: object): void {
    if (jsonEqual(status, workload.status)) return;
    this.loop.put(this.#storage, { ...workload, status } as ModelObject);
  }
}

/** The key of an object's controller, if that is of the kind. */
function ownerKeys(object: ModelObject, kind: string): readonly string[] {
  const owner = controllerOf(object);
  if (owner?.kind !== kind) return [];
  return [`${object.metadata.namespace ?? ""}/${owner.name}`];
}

/**
 * The body of a pod that `owner` creates from its template; a `name` that ends in `-` is a prefix.
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

const hashes = new WeakMap<TemplateObject, string>();

/** A short hash of a template's content (FNV-1a); stored templates are frozen. */
export function templateHash(template: TemplateObject): string {
  const known = hashes.get(template);
  if (known !== undefined) return known;
  const hash = contentHash(template);
  if (Object.isFrozen(template)) hashes.set(template, hash);
  return hash;
}

function contentHash(template: TemplateObject): string {
  let hash = 0x811c9dc5;
  for (const letter of JSON.stringify(template)) {
    hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash.toString(36).padStart(7, "0");
}
