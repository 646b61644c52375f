import type { KubeMeta, KubeObject } from "../../../contracts/kube-api.ts";
import { type Fields, fieldsOf } from "../../../core/json/json-field.ts";
import { formatInstant, type Instant, instant } from "../../../core/time/time.ts";

/**
 * Copies JSON deeply and freezes the copy, so that the store can share it with all readers.
 * Undefined properties are omitted, as in JSON. A part that is already frozen is shared as it is:
 * all data in this code base are either deeply frozen or not at all.
 */
export function frozenCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenElement)) as T;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) copy[key] = frozenCopy(member);
  }
  return Object.freeze(copy) as T;
}

/** Freezes a value that the caller owns in place; stops at frozen parts. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const key in value) deepFreeze(value[key]);
  return Object.freeze(value);
}

/** Like `frozenCopy`, but also omits null members, as typed Kubernetes fields do. */
export function frozenCopyWithoutNulls<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopyWithoutNulls)) as T;
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined && member !== null) copy[key] = frozenCopyWithoutNulls(member);
  }
  return Object.freeze(copy) as T;
}

function frozenElement(element: unknown): unknown {
  return element === undefined ? null : frozenCopy(element);
}

/** Whether two JSON values are equal; shared parts are compared at no cost. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return arraysEqual(a, b);
  return recordsEqual(a as Record<string, unknown>, b as Record<string, unknown>);
}

function arraysEqual(a: unknown, b: unknown): boolean {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
  return a.every((element, index) => jsonEqual(element, b[index]));
}

function recordsEqual(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && jsonEqual(a[key], b[key]));
}

/** An object as the model stores it: complete, deeply frozen, shared without cloning. */
export interface ModelObject extends KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ModelMeta;
}

export interface ModelMeta extends KubeMeta {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly generation?: number;
  readonly deletionGracePeriodSeconds?: number;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** A copy of the object with other metadata; the rest is shared. */
export function withMeta(object: ModelObject, changes: Partial<ModelMeta>): ModelObject {
  return { ...object, metadata: { ...object.metadata, ...changes } };
}

export function namespaceOf(object: ModelObject): string {
  return object.metadata.namespace ?? "";
}

/** Whether the condition Ready of a Pod or Node is True. */
export function isReady(object: ModelObject): boolean {
  const conditions = fieldsOf(object.status).conditions;
  if (!Array.isArray(conditions)) return false;
  return conditions.some((one: Fields) => one.type === "Ready" && one.status === "True");
}

let lastSecond = Number.NaN;

let lastText = "";

/** An instant as Kubernetes writes it: whole seconds, `2026-11-20T00:00:00Z`. */
export function timestamp(at: Instant): string {
  const second = Math.floor(at / 1000);
  // Most writes of a run happen in the same second as the write before.
  if (second !== lastSecond) {
    lastSecond = second;
    lastText = `${formatInstant(instant(second * 1000)).slice(0, 19)}Z`;
  }
  return lastText;
}

type ChangeListener = (change: StoredChange) => void;

/** All objects, with one revision counter, as in etcd. */
export class ModelStore {
  readonly #collections = new Map<string, ObjectCollection>();
  readonly #historyLimit: number;
  #revision = 1;

  constructor(historyLimit: number) {
    this.#historyLimit = historyLimit;
  }

  get revision(): number {
    return this.#revision;
  }

  collection(storage: string): ObjectCollection {
    const known = this.#collections.get(storage);
    if (known) return known;
    const made = new ObjectCollection(this.#historyLimit, () => ++this.#revision);
    this.#collections.set(storage, made);
    return made;
  }

  /**
   * Drops all history, so that a watch from an earlier revision is answered 410. Others have
   * written meanwhile: no watcher is at the newest one.
   */
  compact(): void {
    this.#revision += 1;
    for (const collection of this.#collections.values()) collection.history.compact(this.#revision);
  }
}

/** The objects of one storage, by namespace and name; cluster-scoped ones under "". */
export class ObjectCollection {
  readonly history: WatchHistory;
  readonly #nextRevision: () => number;
  readonly #byNamespace = new Map<string, Map<string, ModelObject>>();
  readonly #byNode = new Map<string, Map<string, ModelObject>>();
  readonly #listeners = new Set<ChangeListener>();
  #size = 0;

  constructor(historyLimit: number, nextRevision: () => number) {
    this.history = new WatchHistory(historyLimit);
    this.#nextRevision = nextRevision;
  }

  get size(): number {
    return this.#size;
  }

  get(namespace: string, name: string): ModelObject | undefined {
    return this.#byNamespace.get(namespace)?.get(name);
  }

  /** Writes a new or changed object; returns what is stored, with its revision. */
  put(object: ModelObject): ModelObject {
    const revision = this.#nextRevision();
    const stored = deepFreeze(withMeta(object, { resourceVersion: String(revision) }));
    const previous = this.get(namespaceOf(stored), stored.metadata.name);
    this.#index(stored, previous);
    this.#publish({ type: previous ? "MODIFIED" : "ADDED", object: stored, previous, revision });
    return stored;
  }

  remove(object: ModelObject): void {
    const namespace = namespaceOf(object);
    const previous = this.get(namespace, object.metadata.name);
    if (!previous) return;
    this.#byNamespace.get(namespace)?.delete(object.metadata.name);
    this.#leaveNode(previous);
    this.#size -= 1;
    const revision = this.#nextRevision();
    const last = deepFreeze(withMeta(previous, { resourceVersion: String(revision) }));
    this.#publish({ type: "DELETED", object: last, previous, revision });
  }

  /** Ordered by key, as etcd lists them; of one namespace or of all. */
  list(namespace?: string): readonly ModelObject[] {
    if (namespace !== undefined) return sortedByName(this.#byNamespace.get(namespace));
    const namespaces = [...this.#byNamespace.keys()].toSorted();
    return namespaces.flatMap((one) => sortedByName(this.#byNamespace.get(one)));
  }

  /** Unordered and not copied: for callers that read every object. */
  *all(): Iterable<ModelObject> {
    for (const objects of this.#byNamespace.values()) yield* objects.values();
  }

  /** The objects whose `spec.nodeName` is `nodeName`, ordered by key. */
  onNode(nodeName: string): readonly ModelObject[] {
    const objects = this.#byNode.get(nodeName);
    if (!objects) return [];
    return [...objects.keys()].toSorted().map((key) => objects.get(key) as ModelObject);
  }

  inNamespace(namespace: string): Iterable<ModelObject> {
    return this.#byNamespace.get(namespace)?.values() ?? [];
  }

  /**
   * Calls the listener synchronously at every write, so a listener must not write itself. Returns
   * the function that unsubscribes it.
   */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #index(stored: ModelObject, previous: ModelObject | undefined): void {
    const namespace = namespaceOf(stored);
    if (!this.#byNamespace.has(namespace)) this.#byNamespace.set(namespace, new Map());
    this.#byNamespace.get(namespace)?.set(stored.metadata.name, stored);
    if (previous === undefined) this.#size += 1;
    const nodeName = nodeNameOf(stored);
    if (previous !== undefined && nodeNameOf(previous) !== nodeName) this.#leaveNode(previous);
    if (nodeName === "") return;
    if (!this.#byNode.has(nodeName)) this.#byNode.set(nodeName, new Map());
    this.#byNode.get(nodeName)?.set(keyOf(stored), stored);
  }

  #leaveNode(object: ModelObject): void {
    const nodeName = nodeNameOf(object);
    const objects = this.#byNode.get(nodeName);
    objects?.delete(keyOf(object));
    if (objects?.size === 0) this.#byNode.delete(nodeName);
  }

  #publish(change: StoredChange): void {
    this.history.push(change);
    for (const listener of this.#listeners) listener(change);
  }
}

function sortedByName(objects: Map<string, ModelObject> | undefined): readonly ModelObject[] {
  if (!objects) return [];
  return [...objects.keys()].toSorted().map((name) => objects.get(name) as ModelObject);
}

function nodeNameOf(object: ModelObject): string {
  const nodeName = fieldsOf(object.spec).nodeName;
  return typeof nodeName === "string" ? nodeName : "";
}

function keyOf(object: ModelObject): string {
  return `${namespaceOf(object)}/${object.metadata.name}`;
}

/** One write to the store. */
export interface StoredChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The state after the write; for DELETED the last state, with the revision of the deletion. */
  readonly object: ModelObject;
  readonly previous: ModelObject | undefined;
  readonly revision: number;
}

/** The latest changes of one storage, from which a reconnecting watch catches up. */
class WatchHistory {
  readonly #limit: number;
  #changes: StoredChange[] = [];
  /** Changes up to this revision are dropped. */
  #forgotten = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(change: StoredChange): void {
    this.#changes.push(change);
    if (this.#changes.length >= 2 * this.#limit) this.#forgetOldest(this.#limit);
  }

  /** The changes after `revision`, oldest first; undefined if some of them are dropped. */
  since(revision: number): readonly StoredChange[] | undefined {
    if (revision < this.#forgotten) return undefined;
    return this.#changes.slice(this.#firstAfter(revision));
  }

  compact(revision: number): void {
    this.#changes = [];
    this.#forgotten = revision;
  }

  get forgotten(): number {
    return this.#forgotten;
  }

  #forgetOldest(count: number): void {
    const last = this.#changes[count - 1];
    if (last !== undefined) this.#forgotten = last.revision;
    this.#changes = this.#changes.slice(count);
  }

  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
