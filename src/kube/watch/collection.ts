import type { Clock } from "../../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeSender,
  KubeWatchEvent,
  KubeWatchRequest,
  Urgency,
} from "../../contracts/kube-api.ts";
import { fieldsOf, isSameJson, textOf, valueAt } from "../../core/json/json-field.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { apiError, reviewsPath } from "../object/api-call.ts";

/** Lists every object of a collection, page by page. Throws the error of a failed page. */
export async function listAll(
  api: KubeSender,
  path: string,
  query: Readonly<Record<string, string>> = {},
  limit?: PageLimit,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  for await (const page of listPages(api, path, { query, limit })) objects.push(...page);
  return objects;
}

/**
 * The page size of a list, or `None` for a single response. Before Kubernetes 1.34 an API server
 * reads pages from etcd, which does not support selectors: a page of one node's pods reads those of
 * the whole cluster. A single response comes from its cache, indexed by node, and since 1.31 it is
 * as fresh as from etcd (KEP-2340 and KEP-4988, kubernetes#77733).
 */
export type PageLimit = number | "None";

export interface PageOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Default 500, as for kubectl. */
  readonly limit?: PageLimit | undefined;
  readonly urgency?: Urgency | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Lists page by page, so that only one page is in memory. */
export async function* listPages(
  api: KubeSender,
  path: string,
  { query, limit = 500, urgency, signal }: PageOptions,
): AsyncGenerator<readonly KubeObject[]> {
  const tokens = new Set<string>();
  let next: PageQuery | undefined = {};
  while (next !== undefined) {
    const page = { ...query, ...limitQuery(limit), ...next };
    const request: KubeRequest = { method: "GET", path, query: page, urgency, signal };
    const answer = await api.send(request);
    if (answer.status !== 200) throw apiError(request, answer);
    yield itemsOf(path, answer) as readonly KubeObject[];
    next = nextPage(path, answer, tokens);
  }
}

type PageQuery = Readonly<Record<string, string>>;

/**
 * The query parameter for the page after an answer; undefined after the last one. `tokens` are
 * those of the pages read so far. Throws `API_ANSWER_INVALID` if the next page is one of them: a
 * proxy that leaves out the query would otherwise have the first one read without end.
 */
export function nextPage(
  path: string,
  { body }: Pick<KubeAnswer, "body">,
  tokens: Set<string>,
): PageQuery | undefined {
  const token = textOf(valueAt(body, ["metadata", "continue"]));
  if (!token) return undefined;
  if (tokens.has(token)) {
    const found = "found a page that was read before as the next one";
    throw new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot list ${path}: ${found}, expected the rest of the list`,
    );
  }
  tokens.add(token);
  return { continue: token };
}

/**
 * The items of a list. Throws `API_ANSWER_INVALID` if the response is not a list, so that the
 * response of something else does not look like an empty fleet or an empty node.
 */
export function itemsOf(path: string, { body }: Pick<KubeAnswer, "body">): readonly unknown[] {
  const { kind, items } = fieldsOf(body);
  if (Array.isArray(items)) return items;
  if ((items ?? null) === null && textOf(kind)?.endsWith("List")) return [];
  throw new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot list ${path}: found ${textOf(kind) ?? "no kind"}, expected a list with items`,
  );
}

/** The query parameter for the page size. */
export function limitQuery(limit: PageLimit): Readonly<Record<string, string>> {
  return limit === "None" ? {} : { limit: String(limit) };
}

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
    if (this.items.has(key) && isSameJson(before, item)) return key;
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

/** How often a collection with a missing right or definition is retried. */
const retryAfterMs: Millis = seconds(20);

export interface PermittedApiOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Called when a collection becomes missing or available. */
  readonly onMissing: () => void;
}

/**
 * The API for read-only views: a collection that may not be listed or watched, or does not exist,
 * is treated as empty and reported, so that the rest can be shown.
 */
export class PermittedApi implements KubeApi {
  readonly #options: PermittedApiOptions;
  readonly #missing = new Map<string, string>();

  constructor(options: PermittedApiOptions) {
    this.#options = options;
  }

  /** A sentence for each missing collection, in order of their paths. */
  missing(): readonly string[] {
    return [...this.#missing].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sentence]) => sentence);
  }

  isMissing(path: string): boolean {
    return this.#missing.has(path);
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    const answer = await this.#options.api.send(request);
    if (request.method !== "GET") return answer;
    if (!isMissing(answer)) {
      if (answer.status === 200) this.#found(request.path);
      return answer;
    }
    this.#lacks(request.path, apiError(request, answer).message);
    return { status: 200, body: { metadata: { resourceVersion: "0" }, items: [] } };
  }

  async *watch(request: KubeWatchRequest): AsyncGenerator<KubeWatchEvent> {
    const { path, signal } = request;
    // A collection that could not be listed is not watched, but listed again after a while.
    if (this.#missing.has(path)) {
      yield* this.#listAgain(signal);
      return;
    }
    for await (const event of this.#options.api.watch(request)) {
      const { code: status } = event.object as { readonly code?: number };
      const answer = { status: Number(status), body: event.object };
      if (event.type !== "ERROR" || !isMissing(answer)) {
        yield event;
        continue;
      }
      this.#lacks(path, apiError({ method: "GET", path, verb: "watch" }, answer).message);
      yield* this.#listAgain(signal);
      return;
    }
  }

  async *#listAgain(signal: AbortSignal): AsyncGenerator<KubeWatchEvent> {
    await this.#options.clock.sleep(retryAfterMs, signal).catch(() => undefined);
    if (!signal.aborted) yield expired;
  }

  #lacks(path: string, sentence: string): void {
    if (this.#missing.get(path) === sentence) return;
    this.#missing.set(path, sentence);
    this.#options.onMissing();
  }

  #found(path: string): void {
    if (this.#missing.delete(path)) this.#options.onMissing();
  }
}

/** The event for an expired version, which makes the watcher list again. */
const expired: KubeWatchEvent = {
  type: "ERROR",
  object: { kind: "Status", apiVersion: "v1", code: 410, reason: "Expired", message: "look again" },
};

function isMissing({ status }: KubeAnswer): boolean {
  return status === 403 || status === 404;
}

export interface AskedRight {
  readonly verb: string;
  /** Empty: the core group. */
  readonly group: string;
  readonly resource: string;
}

/** Whether the caller has a permission, by SelfSubjectAccessReview, which everybody may create. */
export async function hasRight(api: KubeSender, right: AskedRight): Promise<boolean> {
  const request = {
    method: "POST",
    path: reviewsPath,
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: right },
    },
  } as const;
  const answer = await api.send(request);
  if (answer.status !== 201) throw apiError(request, answer);
  return valueAt(answer.body, ["status", "allowed"]) === true;
}
