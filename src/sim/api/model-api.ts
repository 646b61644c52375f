import type { Clock } from "../../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeMethod,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../contracts/kube-api.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { instant, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { ApiRefusal, noSuchResource, noUsers } from "./api-refusal.ts";
import { customTypes } from "./custom-resource-definition.ts";
import { answerReview, discover } from "./discovery.ts";
import { handleResource } from "./resource-handler.ts";
import {
  type ApiContext,
  parseResourcePath,
  type ResourcePath,
  ResourceRegistry,
  type ResourceType,
} from "./resource-registry.ts";
import { ObjectLister } from "./store/list-objects.ts";
import { ModelStore, type StoredChange } from "./store/object-store.ts";
import { EventQueue, openWatch, type WatchQueue } from "./store/watch-objects.ts";
import { systemPriorityClasses } from "./write/admission.ts";
import { createObject } from "./write/write-object.ts";

interface ModelApiOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** How many changes of each kind are kept for watches to catch up on; default 10,000. */
  readonly historyLimit?: number;
}

const crdStorage = "customresourcedefinitions.apiextensions.k8s.io";

/**
 * A Kubernetes API server in memory, without its controllers: the kinds, verbs, responses and
 * refusals that Lastcall and kubectl use. Objects are deeply frozen and shared. It passes
 * `test/contract/kube-api.contract.ts`, as real servers do; what it does not support (CEL, managed
 * fields, webhooks, authorization) is declared there.
 */
export class ModelApi implements KubeApi {
  /** For the model's own controllers, which do not go through HTTP. */
  readonly context: ApiContext;
  readonly #lister: ObjectLister;
  readonly #faults = new FaultPlan();
  readonly #watches = new Map<WatchQueue, string>();

  constructor(options: ModelApiOptions) {
    const { clock, rng, historyLimit = 10_000 } = options;
    const store = new ModelStore(historyLimit);
    this.context = { store, registry: new ResourceRegistry(), clock, rng };
    this.#lister = new ObjectLister(this.context);
    store.collection(crdStorage).subscribe((change) => this.#serve(change));
    seedCluster(this.context);
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    request.signal?.throwIfAborted();
    const { bodyAtTurn, ...asked } = request;
    const sent = bodyAtTurn === undefined ? asked : { ...asked, body: bodyAtTurn() };
    const fault = this.#faults.take(sent);
    const answer = fault === undefined ? this.handle(sent) : await this.#fail(sent, fault);
    // As a `Date` header names it.
    const now = this.context.clock.now();
    return { ...answer, serverAt: instant(now - (now % seconds(1))) };
  }

  /** Answers a request synchronously, as `send` does, but without injected faults. */
  handle(request: KubeRequest): KubeAnswer {
    try {
      return this.#dispatch(request);
    } catch (thrown) {
      if (thrown instanceof ApiRefusal) return thrown.toAnswer();
      throw thrown;
    }
  }

  watch(request: KubeWatchRequest): WatchQueue {
    const fault = this.#faults.take({ method: "WATCH", path: request.path });
    if (fault !== undefined) return brokenWatch(fault);
    const query = request.query ?? {};
    const resolved = this.#resolve(parseResourcePath(request.path));
    if (!resolved) return brokenWatch(noSuchResource().toAnswer());
    const { type, path } = resolved;
    const { signal } = request;
    const named = path.name === undefined ? query : withName(query, path.name);
    const queue = openWatch(this.context, {
      type,
      namespace: path.namespace,
      query: named,
      signal,
    });
    this.#remember(queue, request.path);
    return queue;
  }

  /** Makes the next matching requests fail. */
  failNext(fault: Fault): void {
    this.#faults.add(fault);
  }

  /** Drops the history: watches from before now and paginated lists in progress get a 410. */
  compactHistory(): void {
    this.context.store.compact();
    this.#lister.forget();
  }

  /** Breaks every open watch whose path contains `part`. */
  dropWatches(part = ""): void {
    for (const [queue, path] of [...this.#watches]) if (path.includes(part)) queue.close();
  }

  #remember(queue: WatchQueue, path: string): void {
    for (const old of this.#watches.keys()) if (old.closed) this.#watches.delete(old);
    if (!queue.closed) this.#watches.set(queue, path);
  }

  #dispatch(request: KubeRequest): KubeAnswer {
    const { method, as } = request;
    if (as !== undefined) throw noUsers(as.user);
    const found =
      method === "GET" ? discover(this.context.registry, request.path) : answerReview(request);
    if (found) return found;
    const path = parseResourcePath(request.path);
    if (!path) return { status: 404, body: "404 page not found\n" };
    const resolved = this.#resolve(path);
    if (!resolved) throw noSuchResource();
    const { context } = this;
    return handleResource({ context, lister: this.#lister, request, ...resolved });
  }

  #resolve(
    path: ResourcePath | undefined,
  ): { readonly type: ResourceType; readonly path: ResourcePath } | undefined {
    if (!path) return undefined;
    const type = this.context.registry.find(path.apiVersion, path.plural);
    return type && { type, path };
  }

  #fail(request: KubeRequest, fault: FaultEffect): KubeAnswer {
    if (typeof fault !== "string") return fault;
    if (fault === "DropAnswer") this.handle(request);
    throw new LastcallError(
      "API_UNREACHABLE",
      `Cannot ${request.method} ${request.path}: the connection was lost, expected a response`,
    );
  }

  /** Serves the types of a definition while it exists, and drops their objects afterwards. */
  #serve(change: StoredChange): void {
    const { registry, store } = this.context;
    for (const type of change.previous ? customTypes(change.previous) : []) registry.remove(type);
    if (change.type !== "DELETED") {
      for (const type of customTypes(change.object)) registry.add(type);
      return;
    }
    const [type] = customTypes(change.object);
    const collection = store.collection(type?.storage ?? "");
    for (const object of [...collection.all()]) collection.remove(object);
  }
}

function brokenWatch(fault: FaultEffect): WatchQueue {
  const queue: WatchQueue = new EventQueue(() => {});
  if (typeof fault !== "string") {
    queue.push({ type: "ERROR", object: fault.body as KubeWatchEvent["object"] });
  }
  queue.close();
  return queue;
}

function withName(
  query: Readonly<Record<string, string>>,
  name: string,
): Readonly<Record<string, string>> {
  const fields = [query.fieldSelector, `metadata.name=${name}`].filter(Boolean);
  return { ...query, fieldSelector: fields.join(",") };
}

/** Which requests fail; an absent field matches any. */
interface FaultMatch {
  readonly method?: KubeMethod | "WATCH";
  /** A part of the path, or a pattern for it. */
  readonly path?: string | RegExp;
}

/**
 * What happens to a matching request. `Drop`: it is lost before it reaches the server.
 * `DropAnswer`: the server carried it out, and the connection broke before the answer arrived.
 */
type FaultEffect = KubeAnswer | "Drop" | "DropAnswer";

export interface Fault {
  readonly match: FaultMatch;
  readonly answer: FaultEffect;
  /** How many matching requests fail; default one. */
  readonly times?: number;
}

/** The remaining faults, in the order in which they were added. */
class FaultPlan {
  readonly #waiting: { fault: Fault; left: number }[] = [];

  add(fault: Fault): void {
    this.#waiting.push({ fault, left: fault.times ?? 1 });
  }

  /** The fault that matches this request, if any; it counts as used. */
  take(request: { method: KubeMethod | "WATCH"; path: string }): FaultEffect | undefined {
    if (this.#waiting.length === 0) return undefined;
    const at = this.#waiting.findIndex(({ fault }) => fits(fault.match, request));
    const found = this.#waiting[at];
    if (!found) return undefined;
    found.left -= 1;
    if (found.left === 0) this.#waiting.splice(at, 1);
    return found.fault.answer;
  }
}

function fits(match: FaultMatch, request: { method: string; path: string }): boolean {
  if (match.method !== undefined && match.method !== request.method) return false;
  if (match.path === undefined) return true;
  return typeof match.path === "string"
    ? request.path.includes(match.path)
    : match.path.test(request.path);
}

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];

/** What every cluster has from the start: four namespaces and two priority classes. */
function seedCluster(context: ApiContext): void {
  const namespaceType = context.registry.find("v1", "namespaces");
  const classType = context.registry.find("scheduling.k8s.io/v1", "priorityclasses");
  if (!namespaceType || !classType) return;
  for (const name of namespaces) {
    createObject(context, { type: namespaceType, namespace: "", body: { metadata: { name } } });
  }
  for (const [name, value] of Object.entries(systemPriorityClasses)) {
    const body = { metadata: { name }, value, preemptionPolicy: "PreemptLowerPriority" };
    createObject(context, { type: classType, namespace: "", body });
  }
}
