import type { KubeObject, KubeWatchEvent } from "../../../contracts/kube-api.ts";
import { millis, minutes, seconds } from "../../../core/time/time.ts";
import { ApiRefusal, expired, invalid, statusOf } from "../api-refusal.ts";
import { type ApiContext, apiVersionOf, present, type ResourceType } from "../resource-registry.ts";
import { filterOf, type ListScope, type ObjectFilter, selectObjects } from "./list-objects.ts";
import type { StoredChange } from "./object-store.ts";

export type WatchQueue = EventQueue<KubeWatchEvent>;

/**
 * Opens a watch: without a version the current state first, then every change. A refusal is one
 * ERROR event. Source: apiserver `pkg/storage/cacher`.
 */
export function openWatch(
  context: ApiContext,
  watch: ListScope & { readonly signal: AbortSignal },
): WatchQueue {
  const closers: (() => void)[] = [];
  const queue: WatchQueue = new EventQueue(() => {
    for (const close of closers) close();
  });
  try {
    start(context, { ...watch, queue, closers });
  } catch (refusal) {
    if (!(refusal instanceof ApiRefusal)) throw refusal;
    queue.push({ type: "ERROR", object: statusOf(refusal.parts) as KubeObject });
    queue.close();
  }
  return queue;
}

interface OpenWatch extends ListScope {
  readonly signal: AbortSignal;
  readonly queue: WatchQueue;
  readonly closers: (() => void)[];
}

function start(context: ApiContext, watch: OpenWatch): void {
  const { type, queue, closers, signal } = watch;
  const filter = filterOf(watch);
  sendInitial(context, { watch, filter });
  const collection = context.store.collection(type.storage);
  closers.push(collection.subscribe((change) => forward(change, { type, filter, queue })));
  const ended = new AbortController();
  closers.push(() => ended.abort("closed"));
  const onAbort = (): void => queue.close();
  if (signal.aborted) queue.close();
  signal.addEventListener("abort", onAbort, { once: true });
  closers.push(() => signal.removeEventListener("abort", onAbort));
  void keepTime(context, { watch, ended: ended.signal });
}

function sendInitial(
  context: ApiContext,
  { watch, filter }: { watch: OpenWatch; filter: ObjectFilter },
): void {
  const { query, type, queue } = watch;
  const version = query.resourceVersion ?? "";
  const wantsState = query.sendInitialEvents === "true";
  checkInitialEvents(watch);
  if (version === "" || version === "0" || wantsState) {
    for (const object of selectObjects(context, watch)) {
      queue.push({ type: "ADDED", object: present(object, type) });
    }
    if (wantsState) queue.push(initialEnd(context, type));
    return;
  }
  for (const change of changesSince(context, { version, type })) {
    forward(change, { type, filter, queue });
  }
}

function checkInitialEvents({ query, type }: ListScope): void {
  if (query.sendInitialEvents === undefined) return;
  if (query.resourceVersionMatch === "NotOlderThan") return;
  const message =
    "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
  throw invalid({ type: { ...type, group: "meta.k8s.io", kind: "ListOptions" }, name: "" }, [
    { reason: "FieldValueForbidden", message, field: "resourceVersionMatch" },
  ]);
}

function changesSince(
  context: ApiContext,
  from: { version: string; type: ResourceType },
): readonly StoredChange[] {
  const revision = Number(from.version);
  const { store } = context;
  if (!Number.isInteger(revision)) {
    const message = `Invalid value: ${JSON.stringify(from.version)}: strconv.ParseUint: parsing ${JSON.stringify(from.version)}: invalid syntax`;
    throw invalid({ type: { ...from.type, kind: "ListOptions" }, name: "" }, [
      { reason: "FieldValueInvalid", message, field: "resourceVersion" },
    ]);
  }
  if (revision > store.revision) throw tooNew(revision, store.revision);
  const { history } = store.collection(from.type.storage);
  const changes = history.since(revision);
  if (changes) return changes;
  throw expired(`too old resource version: ${revision} (${history.forgotten})`);
}

function tooNew(asked: number, current: number): ApiRefusal {
  const message = `Too large resource version: ${asked}, current: ${current}`;
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  const details = { causes, retryAfterSeconds: 1 };
  return new ApiRefusal({ code: 504, reason: "Timeout", message, details });
}

interface Receiver {
  readonly type: ResourceType;
  readonly filter: ObjectFilter;
  readonly queue: WatchQueue;
}

/** An object that starts to match is ADDED to this watch; one that no longer matches is DELETED. */
function forward(change: StoredChange, { type, filter, queue }: Receiver): void {
  const before = change.previous !== undefined && filter(change.previous);
  const after = change.type !== "DELETED" && filter(change.object);
  if (after) {
    const object = present(change.object, type);
    queue.push({ type: before ? "MODIFIED" : "ADDED", object });
  } else if (before && change.previous) {
    const { resourceVersion } = change.object.metadata;
    const last = { ...change.previous, metadata: { ...change.previous.metadata, resourceVersion } };
    queue.push({ type: "DELETED", object: present(Object.freeze(last), type) });
  }
}

/** How often the server sends a bookmark. */
const bookmarkEvery = minutes(1);

/** Sends bookmarks, and ends the watch at its timeout, or after half an hour to an hour. */
async function keepTime(
  context: ApiContext,
  { watch, ended }: { watch: OpenWatch; ended: AbortSignal },
): Promise<void> {
  const asked = Number(watch.query.timeoutSeconds ?? 0);
  let leftMs = asked > 0 ? seconds(asked) : millis(1000 * (1800 + context.rng() * 1800));
  const bookmarks = watch.query.allowWatchBookmarks === "true";
  while (leftMs > 0 && !ended.aborted) {
    const pause = millis(bookmarks ? Math.min(leftMs, bookmarkEvery) : leftMs);
    const slept = await context.clock.sleep(pause, ended).then(
      () => true,
      () => false,
    );
    if (!slept) return;
    leftMs = millis(leftMs - pause);
    if (bookmarks) watch.queue.push(bookmark(context, watch.type));
  }
  watch.queue.close();
}

function bookmark(context: ApiContext, type: ResourceType): KubeWatchEvent {
  const metadata = Object.freeze({ resourceVersion: String(context.store.revision) });
  const object = Object.freeze({ kind: type.kind, apiVersion: apiVersionOf(type), metadata });
  return { type: "BOOKMARK", object };
}

function initialEnd(context: ApiContext, type: ResourceType): KubeWatchEvent {
  const mark = bookmark(context, type);
  const annotations = { "k8s.io/initial-events-end": "true" };
  const metadata = { ...mark.object.metadata, annotations };
  return { type: "BOOKMARK", object: Object.freeze({ ...mark.object, metadata }) };
}

/** A first-in, first-out queue of events that one consumer iterates over; it ends when closed. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  #waiting: T[] = [];
  #read = 0;
  #wanted: ((result: IteratorResult<T, undefined>) => void) | undefined;
  #closed = false;
  readonly #onClose: () => void;

  constructor(onClose: () => void) {
    this.#onClose = onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The next event if there is one already; it stays in the queue. */
  peek(): T | undefined {
    return this.#waiting[this.#read];
  }

  push(event: T): void {
    if (this.#closed) return;
    if (this.#wanted === undefined) {
      this.#waiting.push(event);
      return;
    }
    const deliver = this.#wanted;
    this.#wanted = undefined;
    deliver({ done: false, value: event });
  }

  /** Accepts no more events; those pushed before are still delivered. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wanted?.({ done: true, value: undefined });
    this.#wanted = undefined;
    this.#onClose();
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#read < this.#waiting.length) {
      const value = this.#waiting[this.#read++] as T;
      if (this.#read === this.#waiting.length) this.#drop();
      return Promise.resolve({ done: false, value });
    }
    if (this.#closed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#wanted = resolve;
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#drop();
    this.close();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #drop(): void {
    this.#waiting = [];
    this.#read = 0;
  }
}
