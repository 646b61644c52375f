import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeRequest, KubeSender } from "../contracts/kube-api.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { describeCall } from "../kube/object/api-error.ts";

export type AgentFetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly body?: string;
  },
) => Promise<Response>;

export interface AccountApiOptions {
  /** `https://10.96.0.1:443`. */
  readonly server: string;
  /** Read for every request: the kubelet replaces the token about every hour. */
  readonly readToken: () => Promise<string>;
  /** Trusts the cluster's CA; how, is the matter of the runtime (`NODE_EXTRA_CA_CERTS`). */
  readonly fetch: AgentFetch;
  readonly clock: Clock;
  readonly userAgent: string;
}

/** A notice leaves no time for a longer wait: the next attempt may meet another API server. */
const timeoutMs: Millis = seconds(5);

/**
 * The API server, for an agent that asks it a few times in its life: web standards only, nothing
 * kept open. The larger client of `src/kube` costs twice the memory that the agent may have.
 */
export class AccountApi implements KubeSender {
  readonly #options: AccountApiOptions;

  constructor(options: AccountApiOptions) {
    this.#options = options;
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    const asking = new AbortController();
    const stop = (): void => asking.abort(request.signal?.reason);
    request.signal?.addEventListener("abort", stop, { once: true });
    try {
      request.signal?.throwIfAborted();
      return await Promise.race([this.#late(asking), this.#exchange(request, asking.signal)]);
    } catch (error) {
      throw this.#faultOf(request, error);
    } finally {
      request.signal?.removeEventListener("abort", stop);
      asking.abort();
    }
  }

  async #exchange(request: KubeRequest, signal: AbortSignal): Promise<KubeAnswer> {
    const token = await this.#options.readToken();
    const query = request.query === undefined ? "" : `?${new URLSearchParams(request.query)}`;
    const init = {
      method: request.method,
      headers: {
        accept: "application/json",
        // One that is kept for the next notice, minutes later, may be dead by then, unnoticed.
        connection: "close",
        authorization: `Bearer ${token}`,
        "content-type": request.patchType ?? "application/json",
        "user-agent": this.#options.userAgent,
      },
      signal,
    };
    const body = request.bodyAtTurn?.() ?? request.body;
    const response = await this.#options.fetch(
      `${this.#options.server}${request.path}${query}`,
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    );
    const answered = bodyOf(await response.text());
    if (response.ok && typeof answered !== "object") throw this.#invalid(request);
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    return {
      status: response.status,
      body: answered,
      ...(Number.isFinite(retryAfter) ? { retryAfterSeconds: retryAfter } : {}),
    };
  }

  /** A page of a proxy does not say that a notice was written: it would not be reported again. */
  #invalid(request: KubeRequest): LastcallError {
    return new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot ${describeCall(request)}: ${this.#options.server} answered with no JSON, check whether a proxy answers in its place`,
    );
  }

  #late(asking: AbortController): Promise<never> {
    return new Promise((_, reject) => {
      this.#options.clock.sleep(timeoutMs, asking.signal).then(
        () => reject(new Error(`no answer within ${timeoutMs} ms`)),
        (reason: unknown) => reject(reason),
      );
    });
  }

  #faultOf(request: KubeRequest, error: unknown): LastcallError {
    const lead = `Cannot ${request.method} ${request.path}`;
    if (request.signal?.aborted) {
      return new LastcallError("INTERRUPTED", `${lead}: interrupted, expected an answer`, {
        cause: error,
      });
    }
    if (isLastcallError(error)) return error;
    const found = messageOf(error instanceof Error ? (error.cause ?? error) : error);
    return new LastcallError(
      "API_UNREACHABLE",
      `${lead}: ${this.#options.server} does not answer (${found}), expected an answer`,
      { cause: error },
    );
  }
}

/** An API server's own words are JSON; an overloaded one sends text, and so do proxies. */
function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
