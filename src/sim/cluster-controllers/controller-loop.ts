import type { Millis } from "../../core/time/time.ts";
import type { ApiContext } from "../api/api-context.ts";
import { ApiRefusal } from "../api/api-refusal.ts";
import type { ResourceType } from "../api/resource-registry.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import type { ObjectCollection, StoredChange } from "../api/store/object-store.ts";
import { createObject } from "../api/write/create-object.ts";
import { type DeleteOptions, deleteObject } from "../api/write/delete-object.ts";
import { Timetable } from "../time/timers.ts";
import { splitKey } from "./cluster-object.ts";

/** One controller: what it looks at, and what it does about one key. */
export interface ModelController {
  readonly name: string;
  /** By storage: which keys a change concerns. */
  readonly concerns: Readonly<Record<string, (change: StoredChange) => readonly string[]>>;
  /** Brings the cluster one step nearer to what is wanted for `key`. */
  reconcile(key: string): void;
}

/**
 * Runs the controllers: a change marks keys, and marked keys are reconciled once the writer is
 * done, each once, in the order in which they were marked. Controllers work past the wire.
 */
export class ControllerLoop {
  readonly context: ApiContext;
  readonly #marked = new Map<string, { controller: ModelController; key: string }>();
  readonly #timetable: Timetable;
  readonly #unsubscribe: (() => void)[] = [];
  #flushing = false;
  #stopped = false;

  constructor(context: ApiContext) {
    this.context = context;
    this.#timetable = new Timetable(context.clock);
  }

  /** Starts a controller; objects that are there already are reconciled first. */
  add(controller: ModelController): void {
    for (const [storage, keysOf] of Object.entries(controller.concerns)) {
      const collection = this.context.store.collection(storage);
      const onChange = (change: StoredChange): void => {
        for (const key of keysOf(change)) this.cordon(controller, key);
      };
      this.#unsubscribe.push(collection.subscribe(onChange));
      for (const object of collection.all()) {
        onChange({ type: "ADDED", object, previous: undefined, revision: 0 });
      }
    }
  }

  cordon(controller: ModelController, key: string): void {
    if (this.#stopped) return;
    this.#marked.set(`${controller.name}|${key}`, { controller, key });
    if (this.#flushing) return;
    this.#flushing = true;
    void Promise.resolve().then(() => this.#flush());
  }

  /** Marks a key after a span of time. */
  markAfter(span: Millis, { controller, key }: { controller: ModelController; key: string }): void {
    this.after(span, () => this.cordon(controller, key));
  }

  /** Does something after a span of time, unless the loop is stopped by then. */
  after(span: Millis, act: () => void): void {
    this.#timetable.after(span, act);
  }

  stop(): void {
    this.#stopped = true;
    this.#timetable.stop();
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#marked.clear();
  }

  collection(storage: string): ObjectCollection {
    return this.context.store.collection(storage);
  }

  get<T extends ModelObject>(storage: string, key: string): T | undefined {
    const { namespace, name } = splitKey(key);
    return this.collection(storage).get(namespace, name) as T | undefined;
  }

  /** Creates; a name that is taken or a namespace that is going is no fault of a controller. */
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
      for (const [id, { controller, key }] of this.#marked) {
        this.#marked.delete(id);
        controller.reconcile(key);
      }
    } finally {
      this.#flushing = false;
    }
  }
}
