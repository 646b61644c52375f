import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeRequest, KubeSender } from "../contracts/kube-api.ts";
import { withinTime } from "../contracts/time-limit.ts";
import { fieldsOf, textOf, valueAt } from "../core/json/json-field.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../errors.ts";
import { describeCall } from "../kube/object/api-call.ts";

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
  /** Called for every request, because the kubelet rotates the token about every hour. */
  readonly readToken: () => Promise<string>;
  /** Has to trust the cluster's CA, which the runtime configures (`NODE_EXTRA_CA_CERTS`). */
  readonly fetch: AgentFetch;
  readonly clock: Clock;
  readonly userAgent: string;
}

/** Short, because a notice leaves little time and a retry may reach another API server. */
const timeoutMs: Millis = seconds(5);

/**
 * A minimal API client for an agent that sends few requests: web standards only, no open
 * connections. The full client of `src/kube` needs twice the agent's memory budget.
 */
export class AccountApi implements KubeSender {
  readonly #options: AccountApiOptions;

  constructor(options: AccountApiOptions) {
    this.#options = options;
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    const { clock } = this.#options;
    const late = () => new Error(`no response within ${timeoutMs} ms`);
    try {
      const work = (signal: AbortSignal) => this.#exchange(request, signal);
      return await withinTime(work, { clock, limitMs: timeoutMs, late }, request.signal);
    } catch (error) {
      throw this.#faultOf(request, error);
    }
  }

  async #exchange(request: KubeRequest, signal: AbortSignal): Promise<KubeAnswer> {
    const token = await this.#options.readToken();
    const query = request.query === undefined ? "" : `?${new URLSearchParams(request.query)}`;
    const init = {
      method: request.method,
      headers: {
        accept: "application/json",
        // A connection kept for the next notice could be dead by then without being noticed.
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

  /** A proxy's page must not count as a written notice, which would not be reported again. */
  #invalid(request: KubeRequest): LastcallError {
    return new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot ${describeCall(request)}: ${this.#options.server} returned no JSON, check whether a proxy responds in its place`,
    );
  }

  #faultOf(request: KubeRequest, error: unknown): LastcallError {
    const lead = `Cannot ${request.method} ${request.path}`;
    if (request.signal?.aborted) {
      return new LastcallError("INTERRUPTED", `${lead}: interrupted, expected a response`, {
        cause: error,
      });
    }
    if (isLastcallError(error)) return error;
    const found = messageOf(error instanceof Error ? (error.cause ?? error) : error);
    return new LastcallError(
      "API_UNREACHABLE",
      `${lead}: ${this.#options.server} does not respond (${found}), expected a response`,
      { cause: error },
    );
  }
}

/** Parses JSON. Overloaded API servers and proxies send text, which is returned as it is. */
function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export interface TokenNode {
  readonly name: string;
  readonly uid: string;
}

/**
 * The node that a bound service account token names. A token requested by the kubelet carries the
 * name and the uid of its node (KEP-4193, on by default from Kubernetes 1.30), so the agent needs
 * no permission to read Nodes. Nothing is verified here: it is our own token, and the API server
 * verifies it. Undefined if the token has no such claim.
 */
export function nodeOfToken(token: string): TokenNode | undefined {
  const node = fieldsOf(valueAt(claimsOf(token), ["kubernetes.io", "node"]));
  const [name, uid] = [textOf(node.name), textOf(node.uid)];
  if (!name || !uid) return undefined;
  return { name, uid };
}

/**
 * The uid of the node that the agent runs on. Throws `CONFIG_INVALID` if the token belongs to
 * another node, and `RIGHT_MISSING` if it names none.
 */
export function ownUid(token: string, nodeName: string): string {
  const node = nodeOfToken(token);
  if (node === undefined) {
    throw new LastcallError(
      "RIGHT_MISSING",
      `Cannot determine the uid of node ${nodeName}: the service account token names no node, expected a token bound to a pod by Kubernetes 1.30 or later`,
    );
  }
  if (node.name !== nodeName) {
    throw new LastcallError(
      "CONFIG_INVALID",
      `Cannot report notices of node ${nodeName}: the service account token is bound to ${node.name}, --node-name must be the node that the pod runs on`,
    );
  }
  return node.uid;
}

function claimsOf(token: string): unknown {
  const payload = token.split(".")[1];
  if (payload === undefined) return undefined;
  try {
    const binary = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
