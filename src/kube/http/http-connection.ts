import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "../../contracts/clock.ts";
import type { KubeMethod } from "../../contracts/kube-api.ts";
import { CredentialCache, type KubeAccess, type KubeCredentials } from "../access/kube-access.ts";
import { PingSession, type ProbeAnswer } from "./connection-probe.ts";
import { SocketPool, type SocketUse } from "./socket-pool.ts";
import { isConnectionLost } from "./transport-error.ts";

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
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Default: JSON, the whole object. */
  readonly accept?: string | undefined;
  readonly use: "Request" | "Watch" | "Probe";
  /** Aborts the exchange at any point, including while reading the body. */
  readonly signal: AbortSignal;
}

interface Attempt {
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

  #exchange(attempt: Attempt): Promise<IncomingMessage> {
    const { request } = attempt;
    return new Promise((resolve, reject) => {
      request.signal.throwIfAborted();
      const send = this.#server.protocol === "https:" ? https.request : http.request;
      const sent = send(this.#requestOptions(attempt));
      const abort = () => sent.destroy(request.signal.reason);
      request.signal.addEventListener("abort", abort);
      sent.on("close", () => request.signal.removeEventListener("abort", abort));
      sent.on("response", resolve);
      sent.on("error", (error) => {
        const stale = sent.reusedSocket && isConnectionLost(error) && !request.signal.aborted;
        reject(stale ? new StaleSocket(error) : error);
      });
      sent.on("socket", probeOften);
      sent.end(request.body);
    });
  }

  #requestOptions({ request, credentials, use }: Attempt): https.RequestOptions {
    const { agent, tls } = this.#pool.route(credentials, use);
    const query = request.query === undefined ? "" : `?${new URLSearchParams(request.query)}`;
    const prefix = this.#server.pathname.replace(/\/$/, "");
    return {
      method: request.method,
      hostname: this.#server.hostname.replace(/^\[|\]$/g, ""),
      port: this.#server.port,
      path: prefix + request.path + query,
      headers: { ...this.#headers(request), ...credentials.headers },
      ...(credentials.auth === undefined ? {} : { auth: credentials.auth }),
      agent,
      ...tls,
    };
  }

  #headers({ body, contentType, accept }: WireRequest): Record<string, string> {
    const headers = { accept: accept ?? "application/json", "user-agent": this.#userAgent };
    if (body === undefined) return headers;
    return {
      ...headers,
      "content-type": contentType ?? "application/json",
      "content-length": String(Buffer.byteLength(body)),
    };
  }
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
 * Lets the kernel detect a vanished peer on an idle connection within 4 s.
 */
function probeOften(socket: Socket): void {
  socket.setKeepAlive(true, 1_000, 1_000, 3);
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
