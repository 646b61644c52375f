import type { LookupAddress } from "node:dns";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { asJson, asPattern, asXml } from "../core/action/template.ts";
import { excerpt } from "../core/json/json-field.ts";
import { parseHttpDate } from "../core/time/time.ts";
import { type ErrorCode, LastcallError, messageOf } from "../errors.ts";
import { bareHost, type HostAndPort, type HostRule, isNamed, mayReach } from "./action-hosts.ts";

/** A receiver's response, as far as it was read. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /** The redirect target. */
  readonly location?: string | undefined;
  /** The requested delay before a retry. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Converts an unsuccessful response to an error, for all receivers of actions. `what` completes
 * "Cannot …". The message contains no secret and no address, since that of a webhook is a secret.
 */
export function faultOfAnswer(what: string, answer: HttpAnswer): LastcallError {
  const { status, body } = answer;
  const code = codeOf(status);
  if (code === "ACTION_REDIRECTED") {
    const { host = "", hostname = "" } = URL.parse(answer.location ?? "") ?? {};
    const to = host === "" ? "" : ` to ${host}`;
    // A redirect to a bare address is rather an attack than a move.
    const isAddress = isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
    const remedy = isAddress ? "which is not followed" : "use the address that it redirects to";
    const problem = `Cannot ${what}: it redirects${to} (${status}), ${remedy}`;
    return new LastcallError(code, problem);
  }
  const isToWait = status === 429 || status === 503;
  const retryAfterMs = isToWait ? answer.retryAfterMs : undefined;
  const problem = `Cannot ${what}: found ${status} (${excerpt(body)})`;
  return new LastcallError(code, problem, { retryAfterMs });
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

/** Shorter secrets occur in texts by chance, so they are hidden only as separate words. */
const shortestSecret = 6;

/**
 * Hides the secrets of requests in texts, even if a receiver repeats them: the secret, the parts of
 * it that a receiver sees, and their encodings.
 */
class HiddenSecrets {
  readonly #known = new Set<string>();
  readonly #forms = new Set<string>();
  readonly #words: RegExp[] = [];
  /** Longest first, because one secret may be the prefix of another. */
  #sorted: readonly string[] = [];

  add(secret: string): void {
    if (secret === "" || this.#known.has(secret)) return;
    this.#known.add(secret);
    if (secret.length < shortestSecret) this.#words.push(wordPattern(secret));
    const whole = [secret, ...addressParts(secret), ...credentialParts(secret)];
    for (const one of whole.filter(({ length }) => length >= shortestSecret)) {
      for (const form of formsOf(one)) this.#forms.add(form);
    }
    this.#sorted = [...this.#forms].toSorted((a, b) => b.length - a.length);
  }

  /** Hides only secrets that are too long to occur by chance, in a text that is processed. */
  hide(text: string): string {
    return this.#sorted.reduce((shown, form) => shown.replaceAll(form, "***"), text);
  }

  /** Hides all secrets, in a text that is only shown. */
  hideAll(text: string): string {
    return this.#words.reduce((shown, word) => shown.replace(word, "***"), this.hide(text));
  }
}

function wordPattern(word: string): RegExp {
  return new RegExp(`(?<![A-Za-z0-9])${asPattern(word)}(?![A-Za-z0-9])`, "g");
}

/** The parts of an address that a receiver sees. */
function addressParts(secret: string): readonly string[] {
  const url = URL.parse(secret);
  if (url === null) return [];
  const parts = url.pathname.split("/");
  return [url.pathname, ...parts, ...parts.map(unescaped), ...url.searchParams.values()];
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The decoded user and password of a Basic credential. */
function credentialParts(secret: string): readonly string[] {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(secret)) return [];
  const plain = Buffer.from(secret, "base64").toString("latin1");
  if (!/^[\x20-\x7e]+$/.test(plain)) return [];
  return [plain, ...(plain.includes(":") ? [plain.slice(plain.indexOf(":") + 1)] : [])];
}

/** The encodings of a secret: URL, form, JSON, XML, and base64 at any alignment. */
function formsOf(secret: string): readonly string[] {
  const inAddress = encodeURIComponent(secret);
  const lower = inAddress.replace(/%../g, (code) => code.toLowerCase());
  const bytes = Buffer.from(secret);
  return [
    ...[secret, inAddress, lower, inAddress.replaceAll("%20", "+")],
    ...[asJson(secret), asJson(secret).replaceAll("/", "\\/"), asXml(secret)],
    ...[bytes.toString("base64"), bytes.toString("base64url")],
    ...[0, 1, 2].flatMap((before) => withinBase64(bytes, before)),
  ];
}

/** The part of a base64 encoding that is independent of the surrounding bytes. */
function withinBase64(bytes: Buffer, before: number): readonly string[] {
  const all = Buffer.concat([Buffer.alloc(before), bytes]);
  const first = Math.ceil((before * 8) / 6);
  const last = Math.floor((all.length * 8) / 6);
  return ["base64" as const, "base64url" as const].map((name) =>
    all.toString(name).slice(first, last),
  );
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

/** The size limit of a response; a list of silences is the largest one. */
const mostBytes = 4 * 1024 * 1024;

/**
 * Sends all HTTP requests of actions: only to allowed hosts, to an address that is resolved once
 * and checked before connecting to it, without following redirects, and with a limit on what is
 * read. Messages show only the host of an address, since that of a webhook is a secret. Uses the
 * proxies of the environment; NODE_EXTRA_CA_CERTS applies as everywhere in Node.
 */
export class HttpSender {
  readonly #options: SenderOptions;
  readonly #secrets = new HiddenSecrets();

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Registers a secret of requests, to be hidden in responses. */
  conceal(secret: string): void {
    this.#secrets.add(secret);
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
      const text = await boundedText(response, what);
      // A success is processed; of any other response, messages show the beginning.
      const isWell = status >= 200 && status < 300;
      const body = isWell ? this.#secrets.hide(text) : this.#secrets.hideAll(text);
      const retryAfterMs = spanOf(headers["retry-after"], headers.date);
      return { status, body, location: headers.location, retryAfterMs };
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

function unreachable(what: string, url: URL, error: unknown): LastcallError {
  const problem = `Cannot ${what}: ${placeOf(url).host} does not respond (${messageOf(error)})`;
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
