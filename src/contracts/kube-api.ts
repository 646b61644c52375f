import type { Instant, Millis } from "../core/time/time.ts";

/**
 * The Kubernetes API as bytes on a wire would give it: one request, or one watch. Everything in
 * `src/kube` is written against these two methods, so that the model cluster (in this process)
 * and a real API server (over HTTPS) are the same thing to it. Contract suite:
 * `test/contract/kube-api.contract.ts`.
 */
export interface KubeApi {
  /**
   * Sends one request and gives back whatever the server answered, errors included: a status of
   * 404 or 429 is an answer. Throws `LastcallError` only when there was no answer
   * (`API_UNREACHABLE`, also when the connection was lost after sending) or the signal aborted.
   */
  send(request: KubeRequest): Promise<KubeAnswer>;

  /**
   * Opens a watch and yields its events until the server ends it, the connection drops (the
   * iteration then just ends) or the signal aborts. An answer other than 200 is yielded as one
   * `ERROR` event that carries the Status object; the caller decides what to do about it. Throws
   * `LastcallError` `API_UNREACHABLE` where it could not be opened at all, or where its connection
   * was found dead though nobody had closed it.
   */
  watch(request: KubeWatchRequest): AsyncIterable<KubeWatchEvent>;
}

/** Requests without watches: all that an act needs, and all that the agent's small client has. */
export type KubeSender = Pick<KubeApi, "send">;

export type KubeMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export type PatchType =
  | "application/json-patch+json"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json"
  | "application/apply-patch+yaml";

/**
 * Who goes first in a rush. `First`: a cordon, since every pod that still comes must leave again;
 * `Later`: a record, or a view that can wait a moment. Everything else, evictions too, is `Now`.
 */
export type Urgency = "First" | "Now" | "Later";

export interface KubeRequest {
  readonly method: KubeMethod;
  /** The path below the server's address, such as `/api/v1/nodes/n1`; without a query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  /**
   * Instead of `body`: asked as the request goes out, for what depends on the time that is left by
   * then. In a rush it waits for its turn first. Where this throws, nothing is sent.
   */
  readonly bodyAtTurn?: (() => unknown) | undefined;
  /** For PATCH only. */
  readonly patchType?: PatchType | undefined;
  /** Default `Now`. */
  readonly urgency?: Urgency | undefined;
  /** Once it aborts the request is `Now`, though it waits already. */
  readonly hurry?: AbortSignal | undefined;
  /**
   * The instant after which its answer is of no use, and until which it may wait for its turn. Of
   * those that wait with one urgency the soonest goes first, after those that do not say.
   */
  readonly dueAt?: Instant | undefined;
  /**
   * On success nobody reads what was written: the API server is asked for its metadata alone, and
   * the answer's `body` is undefined.
   */
  readonly ignoresBody?: true | undefined;
  /** How long the answer is waited for, where that is not for the API's own limits to say. */
  readonly timeoutMs?: Millis | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface KubeAnswer {
  readonly status: number;
  /** The parsed JSON body; the text itself where the server sent text/plain. */
  readonly body: unknown;
  /** `Retry-After` in seconds, where the server sent one. */
  readonly retryAfterSeconds?: number | undefined;
  /** The server's own time, by its `Date` header, to the second; where it sent one. */
  readonly serverAt?: Instant | undefined;
}

export interface KubeWatchRequest {
  readonly path: string;
  /**
   * `watch=1` is added; `resourceVersion`, `fieldSelector`, `timeoutSeconds` … are the caller's.
   */
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Of opening it. Default `Now`. */
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
