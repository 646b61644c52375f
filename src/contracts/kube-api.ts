import type { Instant, Millis } from "../core/time/time.ts";

/**
 * The transport to the Kubernetes API: one request or one watch. Everything in `src/kube` uses only
 * these two methods, so that it runs unchanged on the in-process model cluster and on a real API
 * server over HTTPS. Contract suite: `test/contract/kube-api.contract.ts`.
 */
export interface KubeApi {
  /**
   * Sends one request and returns the server's response, whatever its status: 404 and 429 are
   * responses. Throws a `LastcallError` only if there was no response (`API_UNREACHABLE`, also if
   * the connection was lost after sending) or the signal aborted.
   */
  send(request: KubeRequest): Promise<KubeAnswer>;

  /**
   * Opens a watch and yields its events until the server ends it, the connection drops (the
   * iteration then simply ends) or the signal aborts. A status other than 200 is yielded as one
   * `ERROR` event with the Status object; the caller decides what to do about it. Throws
   * `API_UNREACHABLE` if the watch cannot be opened or its connection is found dead without having
   * been closed.
   */
  watch(request: KubeWatchRequest): AsyncIterable<KubeWatchEvent>;
}

/** Requests without watches, which is all that single acts and the agent need. */
export type KubeSender = Pick<KubeApi, "send">;

export type KubeMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export type PatchType =
  | "application/json-patch+json"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json"
  | "application/apply-patch+yaml";

/** An RFC 6902 operation. A `test` of null is one for absence. */
export type PatchOperation =
  | { readonly op: "test" | "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/**
 * The priority of a request during a burst. `First`: cordons, because every pod that is still
 * scheduled to the node has to leave again. `Now`: everything else, including evictions, except
 * `Soon`: records that traffic waits for, and `Later`: records and reads that can wait. `Apart`:
 * the Lease, which neither waits for other requests nor delays them.
 */
export type Urgency = "Apart" | "First" | "Now" | "Soon" | "Later";

export interface KubeRequest {
  readonly method: KubeMethod;
  /** The path below the server's address, such as `/api/v1/nodes/n1`; without a query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  /**
   * Instead of `body`: evaluated when the request is sent, for values that depend on the remaining
   * time. During a burst, requests are queued first. If it throws, nothing is sent. Evaluated again
   * if the request is sent again, with new credentials.
   */
  readonly bodyAtTurn?: (() => unknown) | undefined;
  /** For PATCH only. */
  readonly patchType?: PatchType | undefined;
  /** Default `Now`. */
  readonly urgency?: Urgency | undefined;
  /** When it aborts, a queued request that is `Later` becomes `Soon`. */
  readonly hurry?: AbortSignal | undefined;
  /**
   * The instant after which the response is useless. Within one urgency, queued requests are sent
   * in this order, after those without `dueAt`.
   */
  readonly dueAt?: Instant | undefined;
  /**
   * The caller does not need the written object: the API server returns its metadata only, and the
   * response's `body` is undefined.
   */
  readonly ignoresBody?: true | undefined;
  /**
   * Whose request it is, if not the caller's own. The caller needs the permission to impersonate
   * each part. The model cluster has no users, and refuses it.
   */
  readonly as?: Impersonation | undefined;
  /** Response timeout, in place of the client's default. */
  readonly timeoutMs?: Millis | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Another user. Its groups and extra fields are exactly these. */
export interface Impersonation {
  readonly user: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, string>>;
}

export interface KubeAnswer {
  readonly status: number;
  /** The parsed JSON body, or the text of a text/plain response. */
  readonly body: unknown;
  /** The `Retry-After` header in seconds. */
  readonly retryAfterSeconds?: number | undefined;
  /** The server's time by its `Date` header, in whole seconds. */
  readonly serverAt?: Instant | undefined;
}

export interface KubeWatchRequest {
  readonly path: string;
  /**
   * `watch=1` is added. `resourceVersion`, `fieldSelector`, `timeoutSeconds` are up to the caller.
   */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** The priority of opening the watch. Default `Now`. */
  readonly urgency?: Urgency | undefined;
  readonly signal: AbortSignal;
}

export interface KubeWatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

/** Any Kubernetes object, as JSON. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: KubeMeta;
  readonly [field: string]: unknown;
}

export interface KubeMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}
