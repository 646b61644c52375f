import type { KubeObject } from "../../contracts/kube-api.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";

export type ObjectChange<T> =
  | { readonly kind: "Set"; readonly key: string; readonly item: T; readonly before: T | undefined }
  | { readonly kind: "Removed"; readonly key: string; readonly before: T };

/** An object that could not be kept: which, and why. */
export interface SkippedObject {
  /** `namespace/name` or `name`. */
  readonly name: string;
  readonly error: unknown;
}

export interface ObjectStoreOptions<T> {
  readonly keyBy: "uid" | "name";
  /** What is kept of an object; the object itself is dropped. */
  readonly translate: (object: KubeObject) => T;
  readonly onChange: (change: ObjectChange<T>) => void;
  readonly onSkip: (skipped: SkippedObject) => void;
}

/** The translated objects of one resource, and the version each was translated from. */
export class ObjectStore<T> {
  readonly items = new Map<string, T>();
  readonly #versions = new Map<string, string>();
  readonly #options: ObjectStoreOptions<T>;

  constructor(options: ObjectStoreOptions<T>) {
    this.#options = options;
  }

  /**
   * Keeps the object and gives its key. One of a version that is known changes nothing, nor does
   * one whose translation is as before: a thousand kubelets report three times a second that all is
   * well, and whoever listens would think again each time. One that
   * cannot be translated is reported and leaves what was known of it as it is: a stale fact can be
   * found out when it is acted upon, a missing one looks like an object that is gone.
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

  /** Removes all but the named: what a complete list did not have is gone. */
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
      `Cannot keep an object: ${found}, expected one`,
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

/** Translations are plain data, and one translator writes their fields in one order. */
function isSame(before: unknown, item: unknown): boolean {
  return JSON.stringify(before) === JSON.stringify(item);
}

/**
 * Which items have a key, kept in step with a watch: a change costs what it changes, however many
 * there are. A key has one item as a rule, which then stands there without a list around it.
 */
export class KeyIndex<T extends object> {
  readonly #keysOf: (item: T) => readonly string[];
  readonly #items = new Map<string, T | readonly T[]>();

  constructor(keysOf: (item: T) => readonly string[]) {
    this.#keysOf = keysOf;
  }

  /**
   * `item` comes in the place of `before`; without `before` it is new, without `item` that has
   * gone.
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

  /** In the order in which they came. */
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
 * Tells listeners that something has changed, many changes of one turn as one: a relist of ten
 * thousand nodes calls them once.
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
