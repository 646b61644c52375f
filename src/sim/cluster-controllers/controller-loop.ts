import type { Millis } from "../../core/time/time.ts";
import type { ApiContext } from "../api/api-context.ts";
import { ApiRefusal } from "../api/api-refusal.ts";
import type { ResourceType } from "../api/resource-registry.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ObjectCollection, StoredChange } from "../api/store/object-store.ts";
import { createObject } from "../api/write/create-object.ts";
import { type DeleteOptions, deleteObject } from "../api/write/delete-object.ts";
import { Timers } from "../time/timers.ts";
import { splitKey } from "./cluster-object.ts";

/** One controller: what it watches, and how it reconciles one key. */
export interface ModelController {
  readonly name: string;
  /** By storage: the keys to reconcile after a change. */
  readonly watches: Readonly<Record<string, (change: StoredChange) => readonly string[]>>;
  /** Brings the cluster one step nearer to what is wanted for `key`. */
  reconcile(key: string): void;
}

/**
 * Runs the controllers: a change enqueues keys, and a queued key is reconciled once the writer is
 * done, once, in the order of the queue. Controllers use the store and not the HTTP API.
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

  /** Starts a controller; objects that are there already are reconciled first. */
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

  /** Enqueues a key after a span of time. */
  enqueueAfter(
    span: Millis,
    { controller, key }: { controller: ModelController; key: string },
  ): void {
    this.after(span, () => this.enqueue(controller, key));
  }

  /** Does something after a span of time, unless the loop is stopped by then. */
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

  /** Creates; a name that is taken or a namespace that is terminating is no error. */
  create(parts: { type: ResourceType; namespace: string; body: unknown }): ModelObject | undefined {
    return this.#unlessRefused(() => createObject(this.context, parts));
  }

  delete(object: ModelObject, options: DeleteOptions & { readonly type: ResourceType }): void {
    const { type, ...rest } = options;
    const { name, namespace = "" } = object.metadata;
    this.#unlessRefused(() => deleteObject(this.context, { type, namespace, name, options: rest }));
  }

  /** Writes an object's new state past the server's rules, if anything differs. */
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
