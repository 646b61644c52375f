import type { LookupAddress } from "node:dns";
import http, {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { parseHttpDate } from "../core/time/time.ts";
import { type ErrorCode, LastcallError } from "../errors.ts";
import { bareHost, type HostAndPort, type HostRule, isNamed, mayReach } from "./action-hosts.ts";

/** A receiver's response, as far as it was read. */
export interface HttpAnswer {
  readonly status: number;
  /** Only to be parsed. Messages never quote it: see `faultOfAnswer`. */
  readonly body: string;
  /** The requested delay before a retry. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Converts an unsuccessful response to an error, for everything that a policy names. `what`
 * completes "Cannot …". The message contains the status and nothing else of the response: whoever
 * may write a policy chooses the receiver, and must not read the response of a service that only
 * the controller can reach. A receiver might also repeat the request, with its secrets.
 */
export function faultOfAnswer(what: string, { status, ...answer }: HttpAnswer): LastcallError {
  const code = codeOf(status);
  const isToWait = status === 429 || status === 503;
  const retryAfterMs = isToWait ? answer.retryAfterMs : undefined;
  const remedy =
    code === "ACTION_REDIRECTED" ? ", a redirect, which is not followed; use its target" : "";
  return new LastcallError(code, `Cannot ${what}: found status ${status}${remedy}`, {
    retryAfterMs,
  });
}

function codeOf(status: number): ErrorCode {
  if (status === 429) return "ACTION_RATE_LIMITED";
  if (status === 408 || status === 425 || status >= 500) return "ACTION_UNREACHABLE";
  if (status === 401 || status === 403) return "ACTION_RIGHT_MISSING";
  if (status === 404 || status === 410) return "ACTION_TARGET_UNKNOWN";
  return status >= 300 && status < 400 ? "ACTION_REDIRECTED" : "ACTION_REFUSED";
}

/** The error for a response that is too long or does not match the receiver's documentation. */
export function answerInvalid(what: string, problem: string): LastcallError {
  return new LastcallError("ACTION_ANSWER_INVALID", `Cannot ${what}: ${problem}`);
}

export interface SenderOptions {
  /** The rules of `--action-hosts`. */
  readonly allowed: readonly HostRule[];
  readonly env: ProxyEnv;
  /** `dns.promises.lookup` of all addresses. */
  readonly resolve: (host: string) => Promise<readonly LookupAddress[]>;
}

export interface ActionRequest {
  /** What the request does, for messages: `send to Slack`. */
  readonly what: string;
  readonly url: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | undefined;
}

/** The size limit of a response; lists of alerts and silences are the largest ones. */
const mostBytes = 8 * 1024 * 1024;

/**
 * Sends all HTTP requests to hosts that a policy names, of actions and of the alerts gate: only to
 * allowed hosts, to an address that is resolved once and checked before connecting to it, without
 * following redirects, and with a limit on what is read. Messages show only the host of an address,
 * since that of a webhook is a secret, and the status of a response. Uses the proxies of the
 * environment; NODE_EXTRA_CA_CERTS applies as everywhere in Node.
 */
export class HttpSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Returns the response, whatever its status. Throws ACTION_* and the signal's reason. */
  async send(request: ActionRequest, signal: AbortSignal): Promise<HttpAnswer> {
    signal.throwIfAborted();
    const { what } = request;
    const url = this.#allowedUrl(request);
    const route = await this.#route(url, what);
    try {
      const response = await exchange(url, { request, route, signal });
      const { statusCode: status = 0, headers } = response;
      const body = await boundedText(response, what);
      return { status, body, retryAfterMs: retryAfterMsOf(headers) };
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof LastcallError ? error : unreachable(what, url, error);
    }
  }

  /**
   * The problem with an address, by its host name only; undefined if requests to it are allowed.
   * `url` may contain templates after the host.
   */
  problemOf(url: string): string | undefined {
    const parsed = URL.parse(url);
    if (parsed === null || !/^https?:$/.test(parsed.protocol))
      return "an address that is not http or https";
    if (parsed.username !== "" || parsed.password !== "") return "an address with a password";
    const to = placeOf(parsed);
    if (
      isNamed(this.#options.allowed, to) &&
      (isIP(to.host) === 0 || this.#mayReach(to, to.host))
    ) {
      return undefined;
    }
    return `the host ${to.host}:${to.port}, which --action-hosts does not allow`;
  }

  #allowedUrl({ url, what }: ActionRequest): URL {
    const problem = this.problemOf(url);
    if (problem !== undefined) throw forbidden(what, problem);
    return new URL(url);
  }

  #mayReach(to: HostAndPort, address: string): boolean {
    return mayReach(this.#options.allowed, { ...to, address });
  }

  async #route(url: URL, what: string): Promise<RequestOptions> {
    const to = placeOf(url);
    const proxy = proxyFor(url, this.#options.env);
    const addresses = await this.#addresses(to, { what, isProxied: proxy !== undefined });
    const bad = addresses.find(({ address }) => !this.#mayReach(to, address));
    if (bad !== undefined) {
      const problem = `the address ${bad.address} of ${to.host}, which --action-hosts does not name`;
      throw forbidden(what, problem);
    }
    if (proxy !== undefined) return { agent: proxyAgent(url, proxy) };
    return { agent: false, lookup: lookupOf(addresses) };
  }

  /** Resolves the host, except behind a proxy, which may be the only one to know it. */
  async #addresses(
    { host }: HostAndPort,
    about: { readonly what: string; readonly isProxied: boolean },
  ): Promise<readonly LookupAddress[]> {
    if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
    try {
      return await this.#options.resolve(host);
    } catch {
      if (about.isProxied) return [];
      const problem = `Cannot ${about.what}: ${host} cannot be resolved`;
      throw new LastcallError("ACTION_UNREACHABLE", problem);
    }
  }
}

/**
 * The address of a path under an address that a policy names, whatever that contains: without its
 * query and fragment, which would hide the path.
 */
export function addressUnder(base: string, path: string, query?: URLSearchParams): string {
  const url = new URL(base);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  url.search = query?.toString() ?? "";
  url.hash = "";
  return url.href;
}

function placeOf(url: URL): HostAndPort {
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return { host: bareHost(url.hostname), port };
}

/** Connects to the checked addresses, not to the result of a second lookup. */
function lookupOf(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

/** An agent for a proxy, which needs Node 22.21 or 24.5; an older one would bypass it. */
function proxyAgent(url: URL, proxy: string): http.Agent {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const version = major * 1000 + minor;
  if (version < 22_021 || (version >= 23_000 && version < 24_005)) {
    const problem = `Cannot use a proxy: found Node ${process.versions.node}, expected 22.21, 24.5 or later`;
    throw new LastcallError("ACTION_UNREACHABLE", problem, { retryable: false });
  }
  const proxyEnv = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy };
  const options = { keepAlive: false, proxyEnv };
  return url.protocol === "https:" ? new https.Agent(options) : new http.Agent(options);
}

function exchange(
  url: URL,
  about: {
    readonly request: ActionRequest;
    readonly route: RequestOptions;
    readonly signal: AbortSignal;
  },
): Promise<IncomingMessage> {
  const { request, route, signal } = about;
  const { method, headers, body } = request;
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const sent = { "user-agent": "lastcall", accept: "application/json, */*", ...headers, ...length };
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? https.request : http.request;
    const asked = send(url, { method, headers: sent, ...route, signal }, resolve);
    asked.on("error", reject);
    asked.end(body);
  });
}

/** The longest `X-RateLimit-Reset` in seconds that is a span, not a time since 1970. */
const longestReset = 24 * 60 * 60;

/** `Retry-After`, or `X-RateLimit-Reset` in seconds, which Datadog sends instead. */
function retryAfterMsOf(headers: IncomingHttpHeaders): number | undefined {
  const reset = Number(headers["x-ratelimit-reset"] ?? Number.NaN);
  const resetMs = reset >= 0 && reset <= longestReset ? reset * 1000 : undefined;
  return spanOf(headers["retry-after"], headers.date) ?? resetMs;
}

/** `Retry-After` in seconds, or as an instant relative to the response's `Date`. */
function spanOf(retryAfter = "", date = ""): number | undefined {
  if (/^\d+(\.\d+)?$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const [at, againAt] = [parseHttpDate(date), parseHttpDate(retryAfter)];
  return at === undefined || againAt === undefined || againAt < at ? undefined : againAt - at;
}

async function boundedText(response: IncomingMessage, what: string): Promise<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = "";
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > mostBytes) {
      response.destroy();
      throw answerInvalid(what, `its response is over ${mostBytes / 1024 / 1024} MiB`);
    }
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

function forbidden(what: string, problem: string): LastcallError {
  return new LastcallError(
    "ACTION_HOST_FORBIDDEN",
    `Cannot ${what}: found ${problem}, expected an allowed one`,
  );
}

/** Names the error by its code, since a message may quote what the host sent, as a certificate. */
function unreachable(what: string, url: URL, error: unknown): LastcallError {
  const { code } = error as NodeJS.ErrnoException;
  const problem = `Cannot ${what}: ${placeOf(url).host} does not respond (${code ?? "no HTTP"})`;
  return new LastcallError("ACTION_UNREACHABLE", problem);
}

export type ProxyEnv = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for an address by HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in upper or lower case;
 * undefined for a direct connection.
 */
export function proxyFor(url: URL, env: ProxyEnv): string | undefined {
  const name = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  const proxy = env[name] || env[name.toUpperCase()];
  if (proxy === undefined || proxy === "") return undefined;
  const exceptions = (env.no_proxy || env.NO_PROXY || "").split(/[\s,]+/).filter(Boolean);
  return exceptions.some((one) => isExcepted(url, one.toLowerCase())) ? undefined : proxy;
}

function isExcepted(url: URL, exception: string): boolean {
  if (exception === "*") return true;
  const { domain = "", port } = /^(?<domain>.*?)(:(?<port>\d+))?$/.exec(exception)?.groups ?? {};
  const ownPort = url.port || (url.protocol === "https:" ? "443" : "80");
  if (port !== undefined && port !== ownPort) return false;
  const host = bareHost(url.hostname);
  const suffix = domain.replace(/^\*?\./, "");
  return host === suffix || host.endsWith(`.${suffix}`);
}
