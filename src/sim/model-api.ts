import type { Clock } from "../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
  PatchType,
} from "../contracts/kube-api.ts";
import type { Rng } from "../core/chance/rng.ts";
import { LastcallError } from "../errors.ts";
import { answerReview } from "./api/access-review.ts";
import type { ApiContext } from "./api/api-context.ts";
import { ApiRefusal, noSuchResource } from "./api/api-refusal.ts";
import { customTypes } from "./api/custom-resource-definition.ts";
import { discover } from "./api/discovery.ts";
import { EventQueue } from "./api/event-queue.ts";
import { type Fault, type FaultEffect, FaultPlan } from "./api/fault-plan.ts";
import { ObjectLister } from "./api/list-objects.ts";
import { ModelStore } from "./api/object-store.ts";
import { parseResourcePath, type ResourcePath } from "./api/request-path.ts";
import { handleResource } from "./api/resource-handler.ts";
import { ResourceRegistry } from "./api/resource-registry.ts";
import type { ResourceType } from "./api/resource-type.ts";
import { seedCluster } from "./api/seed-cluster.ts";
import type { StoredChange } from "./api/watch-history.ts";
import { openWatch, type WatchQueue } from "./api/watch-objects.ts";

export interface ModelApiOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  /** How many changes of each kind a watch can catch up on; 10,000 where absent. */
  readonly historyLimit?: number;
}

const crdStorage = "customresourcedefinitions.apiextensions.k8s.io";

/**
 * A Kubernetes API server in memory, without its controllers: the kinds, verbs, answers and
 * refusals that Lastcall and kubectl meet. Objects are frozen to the bottom and shared.
 * Held to `test/contract/kube-api.contract.ts`, which real servers pass too; what it does not do
 * (CEL, managed fields, webhooks, authorization) is declared there.
 */
export class ModelApi implements KubeApi {
  /** For the model's own controllers, which work past the wire. */
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
    if (fault === undefined) return this.handle(sent);
    return this.#fail(sent, fault);
  }

  /** Answers a request at once; what `send` does, without a promise and without faults. */
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

  /** The next requests that fit fail so. */
  failNext(fault: Fault): void {
    this.#faults.add(fault);
  }

  /** Forgets the history: a watch from before now and a list under way in pages answer 410. */
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
    const { method } = request;
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
      `Cannot ${request.method} ${request.path}: the connection was lost, expected an answer`,
    );
  }

  /** Serves what a definition defines as long as it is there, and drops its objects after. */
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

/** What each PATCH content type is called; for callers that speak HTTP. */
export const patchTypes: readonly PatchType[] = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

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
