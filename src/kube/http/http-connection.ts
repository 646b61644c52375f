import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "../../contracts/clock.ts";
import type { Impersonation, KubeMethod } from "../../contracts/kube-api.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { CredentialCache, type KubeAccess, type KubeCredentials } from "../access/kube-access.ts";
import { type ApiCall, describeCall } from "../object/api-call.ts";
import { type DeadConnections, PingSession, type ProbeAnswer } from "./connection-probe.ts";
import { SocketPool, type SocketUse } from "./socket-pool.ts";

/** The request and its server, for messages. */
export interface Asked extends ApiCall {
  readonly server: string;
}

/** The TLS errors that a person can fix. Source: OpenSSL's verify codes in Node. */
const certificateFaults: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "a certificate in its chain is self-signed",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the signer of its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT: "the signer of its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the signer of its certificate is not trusted",
  CERT_SIGNATURE_FAILURE: "the signature of its certificate is wrong",
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
};

/** Converts any error of an exchange to the error that `KubeApi` throws. */
export function transportError(error: unknown, asked: Asked): LastcallError {
  if (isLastcallError(error)) return error;
  const code = codeOf(error);
  const fault = certificateFaults[code];
  if (fault !== undefined) {
    const wanted = "expected one signed by the cluster's certificate-authority";
    return unreachable(
      error,
      `${lead(asked)}: ${asked.server} is not trusted, ${fault}, ${wanted}`,
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const found = `the certificate of ${asked.server} is for another name (${messageOf(error)})`;
    return unreachable(error, `${lead(asked)}: ${found}, expected one for this address`);
  }
  if (code.startsWith("ERR_SSL") || code === "EPROTO") {
    const found = `no TLS connection to ${asked.server} (${fieldOf(error, "reason") || code})`;
    return unreachable(error, `${lead(asked)}: ${found}, expected a TLS server`);
  }
  const found = `no response from ${asked.server} (${reasonOf(code, error)})`;
  const wanted = "expected a reachable API server, check its address and the network";
  return unreachable(error, `${lead(asked)}: ${found}, ${wanted}`);
}

/** The error of a request that timed out. */
export function timeoutError(asked: Asked, limitMs: number): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `${lead(asked)}: no response from ${asked.server} within ${limitMs / 1000} s, expected one in time`,
  );
}

/**
 * The error of a watch whose connection a probe found dead, while the server answered on a new one:
 * the watch only has to be reopened.
 */
export class DeadWatchError extends LastcallError {}

export function deadWatchError(server: string, dead: DeadConnections): DeadWatchError {
  return new DeadWatchError(
    "API_UNREACHABLE",
    `Cannot continue the watches: ${foundOf(server, dead)}, reconnecting`,
  );
}

/** The error of a request in flight on a dead connection, whose result is unknown. */
export function deadRequestError(asked: Asked, dead: DeadConnections): LastcallError {
  return new LastcallError(
    "API_UNREACHABLE",
    `${lead(asked)}: ${foundOf(asked.server, dead)}, expected a live connection`,
  );
}

function foundOf(server: string, { found, silentMs }: DeadConnections): string {
  return found === "Silent"
    ? `no response from ${server} to a probe of the connections within ${silentMs / 1000} s`
    : `the probe connection to ${server} was lost`;
}

/** The error of a request that the caller's signal aborted. */
export function interruptedError(asked: Asked, reason: unknown): LastcallError {
  return new LastcallError("INTERRUPTED", `${lead(asked)}: interrupted (${messageOf(reason)})`, {
    cause: reason,
  });
}

/** Whether the server closed or reset the connection, possibly before reading the request. */
function isConnectionLost(error: unknown): boolean {
  return ["ECONNRESET", "EPIPE", "ECONNABORTED"].includes(codeOf(error));
}

function lead(asked: Asked): string {
  return `Cannot ${describeCall(asked)}`;
}

function unreachable(cause: unknown, message: string): LastcallError {
  return new LastcallError("API_UNREACHABLE", message, { cause });
}

function reasonOf(code: string, error: unknown): string {
  if (code === "ECONNREFUSED") return "connection refused";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "its name does not resolve";
  if (isConnectionLost(error)) return "connection lost";
  return messageOf(error) || code || "unknown fault";
}

/** The error code. For a name with several addresses Node wraps all errors: the first one. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return fieldOf(error, "code");
}

function fieldOf(error: unknown, field: string): string {
  if (typeof error !== "object" || error === null) return "";
  return String((error as Record<string, unknown>)[field] ?? "");
}

const newline = 0x0a;

/** Far more than the JSON of the largest object, since etcd's limit is 1.5 MiB by default. */
const defaultMaxBytes = 64 * 1024 * 1024;

export async function readText(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString("utf8");
}

/**
 * Reads the lines of a byte stream. A chunk may end anywhere, even within a character. The next
 * chunk is read only when every line of the last one was consumed, which applies backpressure. An
 * incomplete last line is dropped. Throws `API_ANSWER_INVALID` for a line over `maxBytes`.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number = defaultMaxBytes,
): AsyncGenerator<string, void, void> {
  let parts: Buffer[] = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      parts.push(chunk.subarray(from, at));
      from = at + 1;
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      heldBytes = 0;
      if (line.trim() !== "") yield line;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
    heldBytes += chunk.length - from;
    if (heldBytes > maxBytes) throw tooLong(heldBytes, maxBytes);
  }
}

function tooLong(heldBytes: number, maxBytes: number): LastcallError {
  return new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot read a line of the watch: ${heldBytes} bytes without an end, expected at most ${maxBytes}`,
  );
}

export interface HttpConnectionOptions {
  readonly access: KubeAccess;
  readonly clock: Clock;
  readonly maxSockets: number;
  readonly userAgent: string;
}

/** One HTTP request. */
export interface WireRequest {
  readonly method: KubeMethod;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Evaluated each time that the request is sent. If it throws, nothing is sent. */
  readonly body?: (() => string | undefined) | undefined;
  readonly contentType?: string | undefined;
  /** Default: JSON, the whole object. */
  readonly accept?: string | undefined;
  /** Default: the user of the kubeconfig. */
  readonly as?: Impersonation | undefined;
  readonly use: "Request" | "Watch" | "Probe";
  /** Aborts the exchange at any point, including while reading the body. */
  readonly signal: AbortSignal;
}

interface WireAttempt {
  readonly request: WireRequest;
  readonly credentials: KubeCredentials;
  readonly use: SocketUse;
}

/**
 * Sends requests as the user of the kubeconfig, and returns the response once its headers arrive.
 */
export class HttpConnection {
  readonly #server: URL;
  readonly #credentials: CredentialCache;
  readonly #pool: SocketPool;
  readonly #pings: PingSession;
  /** The socket of the last probe that was a request. */
  #probed: Socket | undefined;
  readonly #userAgent: string;

  constructor(options: HttpConnectionOptions) {
    this.#server = new URL(options.access.server);
    this.#credentials = new CredentialCache(options.access, options.clock);
    this.#pool = new SocketPool(this.#server, options.maxSockets);
    this.#pings = new PingSession(this.#server);
    this.#userAgent = options.userAgent;
  }

  /**
   * Sends a request. After a 401 it retries once with new credentials, and a GET whose kept-alive
   * socket was closed is retried once on a new one. Other lost requests are up to the caller.
   */
  async open(request: WireRequest): Promise<IncomingMessage> {
    const credentials = await unlessAborted(this.#credentials.get(), request.signal);
    const response = await this.#openOnce(request, credentials);
    if (response.statusCode !== 401) return response;
    const renewed = await unlessAborted(this.#credentials.renew(credentials), request.signal);
    if (renewed === credentials) return response;
    response.resume();
    return await this.#openOnce(request, renewed);
  }

  /** Closes the idle sockets. */
  dropIdle(): void {
    this.#pool.dropIdle();
  }

  /**
   * Probes the server on a persistent connection. Without HTTP/2, or with a proxy from the
   * kubeconfig, this is a small request, for which even a refusal counts as a response.
   */
  async probe(signal: AbortSignal): Promise<ProbeAnswer> {
    const credentials = await unlessAborted(this.#credentials.get(), signal);
    const isOurs = credentials.proxyAgent === undefined;
    const { tls } = this.#pool.route(credentials, "Request");
    const pinged = isOurs ? await this.#pings.ping(tls, signal) : undefined;
    if (pinged !== undefined) return { kind: "Ping", connection: pinged };
    const request = { method: "GET", path: "/version", use: "Probe", signal } as const;
    const response = await this.#openOnce(request, credentials);
    const { socket } = response;
    // A proxy's agent has many sockets, any of which may be used next.
    const isKept = !isOurs || socket === this.#probed;
    this.#probed = socket;
    // Read to its end, so that the next probe uses the same connection.
    for await (const _ of response);
    return { kind: "Request", connection: isKept ? "Kept" : "New" };
  }

  close(): void {
    this.#pings.close();
    this.#pool.close();
  }

  async #openOnce(request: WireRequest, credentials: KubeCredentials): Promise<IncomingMessage> {
    try {
      return await this.#exchange({ request, credentials, use: request.use });
    } catch (error) {
      if (!(error instanceof StaleSocket) || request.method !== "GET") throw causeOf(error);
    }
    try {
      const use = request.use === "Probe" ? "Probe" : "Fresh";
      return await this.#exchange({ request, credentials, use });
    } catch (error) {
      throw causeOf(error);
    }
  }

  #exchange(attempt: WireAttempt): Promise<IncomingMessage> {
    const { request } = attempt;
    return new Promise((resolve, reject) => {
      request.signal.throwIfAborted();
      const body = request.body?.();
      const send = this.#server.protocol === "https:" ? https.request : http.request;
      const sent = send(this.#requestOptions(attempt, body));
      const abort = () => sent.destroy(request.signal.reason);
      request.signal.addEventListener("abort", abort);
      sent.on("close", () => request.signal.removeEventListener("abort", abort));
      sent.on("response", resolve);
      sent.on("error", (error) => {
        const stale = sent.reusedSocket && isConnectionLost(error) && !request.signal.aborted;
        reject(stale ? new StaleSocket(error) : error);
      });
      sent.on("socket", (socket) => {
        if (!sent.reusedSocket) probeOften(socket);
      });
      sent.end(body);
    });
  }

  #requestOptions(
    { request, credentials, use }: WireAttempt,
    body: string | undefined,
  ): https.RequestOptions {
    const { agent, tls } = this.#pool.route(credentials, use);
    const query = request.query === undefined ? "" : `?${new URLSearchParams(request.query)}`;
    const prefix = this.#server.pathname.replace(/\/$/, "");
    return {
      method: request.method,
      hostname: this.#server.hostname.replace(/^\[|\]$/g, ""),
      port: this.#server.port,
      path: prefix + request.path + query,
      headers: { ...this.#headers(request, body), ...credentials.headers },
      ...(credentials.auth === undefined ? {} : { auth: credentials.auth }),
      agent,
      ...tls,
    };
  }

  #headers(
    { contentType, accept, as }: WireRequest,
    body: string | undefined,
  ): OutgoingHttpHeaders {
    const headers = {
      accept: accept ?? "application/json",
      "user-agent": this.#userAgent,
      ...(as === undefined ? {} : impersonationHeaders(as)),
    };
    if (body === undefined) return headers;
    return {
      ...headers,
      "content-type": contentType ?? "application/json",
      "content-length": String(Buffer.byteLength(body)),
    };
  }
}

/**
 * The key of an extra field is part of a header's name, so it is percent-encoded. Source: apiserver
 * `pkg/endpoints/filters/impersonation/impersonation.go`.
 */
function impersonationHeaders({ user, groups, extra }: Impersonation): OutgoingHttpHeaders {
  const extras = Object.entries(extra).map(([key, value]) => [
    `impersonate-extra-${encodeURIComponent(key)}`,
    value,
  ]);
  return {
    "impersonate-user": user,
    "impersonate-group": [...groups],
    ...Object.fromEntries(extras),
  };
}

/** A kept-alive socket was closed by the server before it responded. */
class StaleSocket extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof StaleSocket ? error.cause : error;
}

/**
 * Lets the kernel detect a vanished peer on an idle connection within 4 s. Node's agent would set
 * ten probes again after every request, and each time costs four system calls.
 */
function probeOften(socket: Socket): void {
  socket.setKeepAlive(true, 1_000, 1_000, 3);
  socket.setKeepAlive = () => socket;
}

/** Waits unless the signal aborts, so that a hanging plugin does not delay a request. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
