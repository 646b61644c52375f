import type { KubeObject } from "../../contracts/kube-api.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";

export type ObjectChange<T> =
  | { readonly kind: "Set"; readonly key: string; readonly item: T; readonly before: T | undefined }
  | { readonly kind: "Removed"; readonly key: string; readonly before: T };

/** An object that could not be translated, and why. */
export interface SkippedObject {
  /** `namespace/name` or `name`. */
  readonly name: string;
  readonly error: unknown;
}

export interface ObjectStoreOptions<T> {
  readonly keyBy: "uid" | "name";
  /** Extracts what is kept of an object. */
  readonly translate: (object: KubeObject) => T;
  readonly onChange: (change: ObjectChange<T>) => void;
  readonly onSkip: (skipped: SkippedObject) => void;
}

/** The translated objects of one resource, with the version of each. */
export class ObjectStore<T> {
  readonly items = new Map<string, T>();
  readonly #versions = new Map<string, string>();
  readonly #options: ObjectStoreOptions<T>;

  constructor(options: ObjectStoreOptions<T>) {
    this.#options = options;
  }

  /**
   * Stores the object and returns its key. Nothing changes for a known version, or if the
   * translation is unchanged: the kubelets of a large fleet report several times a second that
   * nothing has changed, which must not wake the listeners. An object that cannot be translated is
   * reported, and its former translation is kept: a stale fact is detected when it is acted on,
   * while a missing one looks like a deleted object.
   */
  put(object: KubeObject): string | undefined {
    const key = this.#keyOf(object);
    if (key === undefined) return undefined;
    const version = object.metadata?.resourceVersion;
    if (version !== undefined && this.#versions.get(key) === version) return key;
    let item: T;
    try {
      item = this.#options.translate(object);
    } catch (error) {
      this.#options.onSkip({ name: nameOf(object), error });
      return key;
    }
    const before = this.items.get(key);
    if (version !== undefined) this.#versions.set(key, version);
    if (this.items.has(key) && isSame(before, item)) return key;
    this.items.set(key, item);
    this.#options.onChange({ kind: "Set", key, item, before });
    return key;
  }

  remove(object: KubeObject): void {
    const key = this.#keyOf(object);
    if (key !== undefined) this.#removeKey(key);
  }

  /** Removes all others: what a complete list does not contain has been deleted. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const key of [...this.items.keys()]) if (!keys.has(key)) this.#removeKey(key);
  }

  #removeKey(key: string): void {
    if (!this.items.has(key)) return;
    const before = this.items.get(key) as T;
    this.items.delete(key);
    this.#versions.delete(key);
    this.#options.onChange({ kind: "Removed", key, before });
  }

  #keyOf(object: KubeObject): string | undefined {
    const key = this.#options.keyBy === "uid" ? object.metadata?.uid : nameOf(object);
    if (typeof key === "string" && key !== "") return key;
    const found = `it has no ${this.#options.keyBy}`;
    const error = new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot cache an object: ${found}, expected one`,
    );
    this.#options.onSkip({ name: nameOf(object), error });
    return undefined;
  }
}

function nameOf(object: KubeObject): string {
  const meta = fieldsOf(object.metadata);
  const [namespace, name = ""] = [textOf(meta.namespace), textOf(meta.name)];
  return namespace ? `${namespace}/${name}` : name;
}

/** Compares translations, which are plain data with a fixed order of fields. */
function isSame(before: unknown, item: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(item);
}

/**
 * An index of items by key, updated incrementally by a watch. A key usually has one item, which is
 * then stored without a list.
 */
export class KeyIndex<T extends object> {
  readonly #keysOf: (item: T) => readonly string[];
  readonly #items = new Map<string, T | readonly T[]>();

  constructor(keysOf: (item: T) => readonly string[]) {
    this.#keysOf = keysOf;
  }

  /**
   * Replaces `before` by `item`. Without `before` the item is new; without `item` it is removed.
   */
  change(before: T | undefined, item: T | undefined): void {
    const old = before === undefined ? [] : this.#keysOf(before);
    const now = item === undefined ? [] : this.#keysOf(item);
    for (const key of old) {
      if (now.includes(key)) continue;
      this.#set(
        key,
        this.of(key).filter((one) => one !== before),
      );
    }
    if (item === undefined) return;
    for (const key of now) {
      const there = this.of(key);
      const has = there.some((one) => one === before);
      this.#set(key, has ? there.map((one) => (one === before ? item : one)) : [...there, item]);
    }
  }

  /** The items of a key, in order of insertion. */
  of(key: string): readonly T[] {
    const there = this.#items.get(key);
    if (there === undefined) return [];
    return isList(there) ? there : [there];
  }

  #set(key: string, items: readonly T[]): void {
    const [first] = items;
    if (first === undefined) this.#items.delete(key);
    else this.#items.set(key, items.length === 1 ? first : items);
  }
}

function isList<T extends object>(there: T | readonly T[]): there is readonly T[] {
  return Array.isArray(there);
}

/**
 * Notifies listeners of changes, once per turn of the event loop: a relist of ten thousand nodes
 * calls them once.
 */
export class ChangeListeners {
  readonly #listeners = new Set<() => void>();
  #isDue = false;

  notify(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      for (const listener of this.#listeners) listener();
    });
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
