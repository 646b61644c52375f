import type { Clock } from "../../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeRequest,
  KubeSender,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../contracts/kube-api.ts";
import { valueAt } from "../../core/json/json-field.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { apiError } from "../object/api-error.ts";
import { reviewsPath } from "../object/paths.ts";

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
