import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../src/contracts/kube-api.ts";
import { ScriptedWatch, unreachable } from "./scripted-api.ts";

/**
 * One Lease object with the API server's version checks, and clients that can lose their connection
 * to it.
 */
export class LeaseServer {
  lease: KubeObject | undefined;
  readonly clients: LeaseClient[] = [];
  #version = 1;
  #made = 0;

  client(): LeaseClient {
    const client = new LeaseClient(this);
    this.clients.push(client);
    return client;
  }

  get holder(): unknown {
    return (this.lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;
  }

  get version(): string {
    return String(this.#version);
  }

  /** Deletes the Lease, as `kubectl delete lease` does. */
  delete(): void {
    const lease = this.lease;
    if (lease === undefined) return;
    this.lease = undefined;
    this.#version += 1;
    const metadata = { ...lease.metadata, resourceVersion: this.version };
    this.#tell({ type: "DELETED", object: { ...lease, metadata } });
  }

  /** Writes without any checks, as `kubectl edit` does. */
  overwrite(change: { holder?: string; label?: string; transitions?: number }): void {
    const spec = { ...(this.lease?.spec as object) } as Record<string, unknown>;
    if (change.holder !== undefined) spec.holderIdentity = change.holder;
    if (change.transitions !== undefined) spec.leaseTransitions = change.transitions;
    const labels = change.label === undefined ? {} : { label: change.label };
    this.#store({ ...this.lease, metadata: { ...this.lease?.metadata, labels }, spec });
  }

  handle(request: KubeRequest): KubeAnswer {
    const isCollection = request.path.endsWith("/leases");
    if (request.method === "GET" && isCollection) {
      const items = this.lease ? [this.lease] : [];
      return { status: 200, body: { metadata: { resourceVersion: this.version }, items } };
    }
    if (request.method === "GET") return this.lease ? ok(200, this.lease) : failure(404);
    const body = request.body as KubeObject;
    if (request.method === "POST") {
      if (this.lease) return failure(409, "AlreadyExists");
      this.#made += 1;
      this.#store({ ...body, metadata: { ...body.metadata, uid: `lease-${this.#made}` } });
      return ok(201, this.lease);
    }
    if (!this.lease) return failure(404);
    const current = this.lease.metadata;
    if (body.metadata?.resourceVersion !== current?.resourceVersion)
      return failure(409, "Conflict");
    this.#store({ ...body, metadata: { ...body.metadata, uid: current?.uid ?? "" } });
    return ok(200, this.lease);
  }

  #store(lease: KubeObject): void {
    const type = this.lease === undefined ? "ADDED" : "MODIFIED";
    this.#version += 1;
    this.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: this.version } };
    this.#tell({ type, object: this.lease });
  }

  #tell(event: KubeWatchEvent): void {
    for (const client of this.clients) client.told(event);
  }
}

function ok(status: number, body: unknown): KubeAnswer {
  return { status, body };
}

function failure(code: number, reason = "NotFound"): KubeAnswer {
  const body = { kind: "Status", status: "Failure", code, reason, message: "said" };
  return { status: code, body };
}

/**
 * `Down`: nothing gets through. `AnswersLost`: requests are carried out, but the responses are
 * lost.
 */
export type Line = "Up" | "Down" | "AnswersLost";

/** One replica's connection to the server. */
export class LeaseClient implements KubeApi {
  line: Line = "Up";
  /** A response to send instead of the server's; undefined for none. */
  refuse: (request: KubeRequest) => KubeAnswer | undefined = () => undefined;
  /** How long the responses take. */
  answersTake: () => Promise<void> = async () => {};
  readonly sent: KubeRequest[] = [];
  watchesOpened = 0;
  readonly #server: LeaseServer;
  readonly #watches = new Set<ScriptedWatch>();

  constructor(server: LeaseServer) {
    this.#server = server;
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    this.sent.push(request);
    if (this.line === "Down") throw unreachable();
    const answer = this.refuse(request) ?? this.#server.handle(request);
    await this.answersTake();
    if (this.line === "AnswersLost") throw unreachable();
    return answer;
  }

  async *watch(request: KubeWatchRequest): AsyncGenerator<KubeWatchEvent, void, void> {
    this.watchesOpened += 1;
    if (this.line === "Down") throw unreachable();
    const watch = new ScriptedWatch(request);
    // Replays what happened since the listed version; a single Lease needs no more history.
    if (request.query?.resourceVersion !== this.#server.version) {
      if (this.#server.lease) watch.push({ type: "MODIFIED", object: this.#server.lease });
      else watch.push({ type: "ERROR", object: { code: 410 } });
    }
    this.#watches.add(watch);
    try {
      yield* watch.read();
    } finally {
      this.#watches.delete(watch);
    }
  }

  /** Cuts the connection and every watch on it. */
  cut(): void {
    this.line = "Down";
    for (const watch of this.#watches) watch.end();
  }

  told(event: KubeWatchEvent): void {
    if (this.line === "Down") return;
    for (const watch of this.#watches) watch.push(event);
  }
}
