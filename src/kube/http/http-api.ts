import type { IncomingMessage } from "node:http";
import type { Clock } from "../../contracts/clock.ts";
import type {
  KubeAnswer,
  KubeApi,
  KubeObject,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../contracts/kube-api.ts";
import {
  between,
  type Instant,
  type Millis,
  millis,
  parseHttpDate,
  seconds,
} from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { KubeAccess } from "../access/kube-access.ts";
import { describeCall } from "../object/api-call.ts";
import { ConnectionProbe, type DeadConnections } from "./connection-probe.ts";
import {
  type Asked,
  deadRequestError,
  deadWatchError,
  HttpConnection,
  interruptedError,
  readLines,
  readText,
  timeoutError,
  transportError,
  type WireRequest,
} from "./http-connection.ts";
import { AttemptLimit, Deadline, RequestLanes } from "./request-limits.ts";
import { SilenceGuard, WatchSilenceLimit } from "./watch-silence.ts";

export interface HttpKubeApiOptions {
  readonly access: KubeAccess;
  readonly clock: Clock;
  /**
   * The timeout from the call to the last byte, including time in the queue. Default 30 s. Requests
   * with `dueAt` use `AttemptLimit`, from the time they are sent.
   */
  readonly requestTimeoutMs?: Millis | undefined;
  /** The pool size for requests; watches have their own sockets. Default 64. */
  readonly maxSockets?: number | undefined;
  /**
   * Whether to probe for dead connections every one or two seconds while a watch is open.
   */
  readonly probesConnections?: boolean | undefined;
  /** Called when a probe has had no answer for this long. */
  readonly onSilent?: ((silentMs: Millis) => void) | undefined;
  /** Called repeatedly while requests are queued. */
  readonly onRush?: (() => void) | undefined;
  /** Called for each request of urgency `First`. */
  readonly onFirst?: (() => void) | undefined;
  readonly userAgent?: string | undefined;
}

/** Falls back to the whole object if a server does not support metadata only. */
const metadataAlone =
  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/** The client of the API server over HTTP or HTTPS. */
export class HttpKubeApi implements KubeApi {
  readonly #server: string;
  readonly #clock: Clock;
  readonly #connection: HttpConnection;
  readonly #lanes: RequestLanes;
  readonly #onFirst: (() => void) | undefined;
  readonly #requestTimeoutMs: Millis;
  readonly #silence = new WatchSilenceLimit();
  readonly #urgentLimit: AttemptLimit;
  readonly #probe: ConnectionProbe | undefined;
  /** The controllers of watches that are open or being opened. */
  readonly #watches = new Set<AbortController>();
  /** Requests in flight, and since when. */
  readonly #inFlight = new Map<Deadline, { readonly asked: Asked; readonly sinceMs: number }>();
  #probing: AbortController | undefined;

  constructor(options: HttpKubeApiOptions) {
    this.#server = options.access.server;
    this.#clock = options.clock;
    this.#urgentLimit = new AttemptLimit(options.clock);
    this.#onFirst = options.onFirst;
    this.#requestTimeoutMs = options.requestTimeoutMs ?? seconds(30);
    const maxSockets = options.maxSockets ?? 64;
    this.#lanes = new RequestLanes(maxSockets, options.clock, options.onRush);
    this.#connection = new HttpConnection({
      access: options.access,
      clock: options.clock,
      maxSockets,
      userAgent: options.userAgent ?? "lastcall",
    });
    if (options.probesConnections !== true) return;
    this.#probe = new ConnectionProbe({
      clock: options.clock,
      ask: (signal) => this.#connection.probe(signal),
      onDead: (dead) => this.#renewAll(dead),
      onSilent: options.onSilent,
    });
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    if (request.urgency === "First") this.#onFirst?.();
    const asked = { method: request.method, path: request.path, server: this.#server };
    const { signal, dueAt } = request;
    const waitMs = request.timeoutMs ?? this.#waitLimit(dueAt);
    const deadline = this.#deadline(asked, { signal, limitMs: waitMs });
    const askedAtMs = this.#clock.monotonic();
    /** How long the server has to respond, once it is sent. */
    let limitMs: Millis | undefined;
    try {
      return await this.#inLane(request, deadline.signal, async () => {
        const sentAtMs = this.#clock.monotonic();
        limitMs = millis(waitMs - (sentAtMs - askedAtMs));
        this.#inFlight.set(deadline, { asked, sinceMs: sentAtMs });
        if (dueAt !== undefined) {
          limitMs = request.timeoutMs ?? this.#urgentLimit.ms;
          deadline.renew(limitMs);
        }
        const response = await this.#connection.open(toWire(request, deadline.signal));
        const text = await readText(response);
        refusePage(response, asked);
        const isRead = request.ignoresBody !== true || (response.statusCode ?? 0) >= 300;
        if (!isRead && !saysKind.test(text)) throw invalidAnswer(asked, "no Kubernetes object");
        const answer = toAnswer(response, isRead ? toBody(response, text, asked) : undefined);
        this.#urgentLimit.answered(this.#clock.monotonic() - sentAtMs);
        return answer;
      });
    } catch (error) {
      // A short rest of a long wait in the queue does not show that the server is slow.
      const shortMs = Math.min(waitMs, this.#urgentLimit.ms);
      if (limitMs !== undefined && limitMs >= shortMs && deadline.isUp) this.#unanswered(limitMs);
      throw transportError(deadline.signal.aborted ? deadline.signal.reason : error, asked);
    } finally {
      this.#inFlight.delete(deadline);
      deadline.end();
    }
  }

  async *watch(request: KubeWatchRequest): AsyncGenerator<KubeWatchEvent, void, void> {
    const ended = new AbortController();
    const end = () => ended.abort();
    if (request.signal.aborted) return;
    request.signal.addEventListener("abort", end);
    this.#enterWatch(ended);
    try {
      const response = await this.#openWatch(request, ended.signal);
      if (response !== undefined) yield* this.#events(request, response);
      if (!request.signal.aborted && isLastcallError(ended.signal.reason))
        throw ended.signal.reason;
    } finally {
      request.signal.removeEventListener("abort", end);
      this.#leaveWatch(ended);
      ended.abort();
    }
  }

  #enterWatch(watch: AbortController): void {
    this.#watches.add(watch);
    if (this.#probe === undefined || this.#probing !== undefined) return;
    this.#probing = new AbortController();
    // It handles all errors itself and never rejects.
    void this.#probe.run(this.#probing.signal);
  }

  #leaveWatch(watch: AbortController): void {
    this.#watches.delete(watch);
    if (this.#watches.size > 0) return;
    this.#probing?.abort();
    this.#probing = undefined;
  }

  /** Renews all connections, because the cause of one dead connection may affect all. */
  #renewAll(dead: DeadConnections): void {
    const { silentMs } = dead;
    const reason = deadWatchError(this.#server, dead);
    this.#connection.dropIdle();
    for (const watch of this.#watches) watch.abort(reason);
    const nowMs = this.#clock.monotonic();
    for (const [deadline, { asked, sinceMs }] of this.#inFlight) {
      if (nowMs - sinceMs >= silentMs) deadline.giveUp(deadRequestError(asked, dead));
    }
  }

  /** Drops idle connections after a timeout, because they may be dead as well. */
  #unanswered(limitMs: Millis): void {
    this.#urgentLimit.unanswered(limitMs);
    this.#connection.dropIdle();
  }

  /** Closes every connection. Requests in flight fail as if the connection had dropped. */
  close(): void {
    this.#connection.close();
  }

  /** Undefined if the caller's signal aborted first. */
  async #openWatch(
    request: KubeWatchRequest,
    ended: AbortSignal,
  ): Promise<IncomingMessage | undefined> {
    const asked = {
      method: "GET",
      path: request.path,
      verb: "watch",
      server: this.#server,
    } as const;
    const deadline = this.#deadline(asked, { signal: ended, limitMs: this.#requestTimeoutMs });
    const stop = new AbortController();
    const abort = () => stop.abort(deadline.signal.reason);
    deadline.signal.addEventListener("abort", abort);
    let limitMs: Millis | undefined;
    try {
      const query = { ...request.query, watch: "1" };
      const wire = { method: "GET", path: request.path, query, use: "Watch" } as const;
      const response = await this.#inLane(request, stop.signal, async () => {
        // Short, because a server responds to a watch at once, and notices depend on it.
        limitMs = this.#urgentLimit.ms;
        deadline.renew(limitMs);
        return await this.#connection.open({ ...wire, signal: stop.signal });
      });
      // From here on only the caller's signal ends it, not the timeout.
      ended.addEventListener("abort", () => response.destroy(), { once: true });
      if (ended.aborted) response.destroy();
      return response;
    } catch (error) {
      if (request.signal.aborted) return undefined;
      if (isLastcallError(ended.reason)) throw ended.reason;
      if (limitMs !== undefined && stop.signal.aborted) this.#unanswered(limitMs);
      throw transportError(stop.signal.aborted ? stop.signal.reason : error, asked);
    } finally {
      deadline.signal.removeEventListener("abort", abort);
      deadline.end();
    }
  }

  async #inLane<T>(
    { urgency = "Now", hurry, dueAt }: Pick<KubeRequest, "urgency" | "hurry" | "dueAt">,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    if (urgency === "Apart") return work();
    const lane = await this.#lanes.enter({ urgency, hurry, dueAt }, signal);
    try {
      return await work();
    } finally {
      this.#lanes.leave(lane);
    }
  }

  async *#events(
    request: KubeWatchRequest,
    response: IncomingMessage,
  ): AsyncGenerator<KubeWatchEvent, void, void> {
    const guard = new SilenceGuard({
      clock: this.#clock,
      limitMs: () => this.#silence.limitMs(request),
      onSilent: () => {
        this.#silence.closed(request);
        response.destroy();
      },
    });
    const heard = this.#silence.opened(request, this.#clock);
    try {
      if (response.statusCode !== 200) {
        yield refusal(response, await readText(guard.listen(response)));
        return;
      }
      for await (const line of readLines(guard.listen(response))) {
        const event = toEvent(line);
        heard(event);
        yield event;
      }
    } catch (error) {
      // A dropped connection simply ends the watch; an invalid response is reported.
      if (error instanceof LastcallError) yield errorEvent(500, error.message);
    } finally {
      guard.end();
      response.destroy();
    }
  }

  /** How long a request may be queued: in a burst until it is due, since it is still useful. */
  #waitLimit(dueAt: Instant | undefined): Millis {
    const leftMs = dueAt === undefined ? 0 : between(this.#clock.now(), dueAt);
    return leftMs > 0 ? millis(leftMs) : this.#requestTimeoutMs;
  }

  #deadline(
    asked: Asked,
    { signal, limitMs }: { readonly signal: AbortSignal | undefined; readonly limitMs: Millis },
  ): Deadline {
    return new Deadline({
      clock: this.#clock,
      limitMs,
      onTime: (passedMs) => timeoutError(asked, passedMs),
      signal,
      onAbort: (reason) => interruptedError(asked, reason),
    });
  }
}

function toWire(request: KubeRequest, signal: AbortSignal): WireRequest {
  return {
    method: request.method,
    path: request.path,
    ...{ query: request.query, as: request.as },
    body: () => JSON.stringify(request.bodyAtTurn?.() ?? request.body),
    contentType: request.patchType,
    accept: request.ignoresBody === true ? metadataAlone : undefined,
    use: "Request",
    signal,
  };
}

function toAnswer(response: IncomingMessage, body: unknown): KubeAnswer {
  const retryAfter = response.headers["retry-after"];
  // An API server never sends the date form of Retry-After.
  const isSeconds = /^\d+$/.test(retryAfter ?? "");
  const serverAt = parseHttpDate(response.headers.date ?? "");
  return {
    status: response.statusCode ?? 0,
    body,
    ...(isSeconds ? { retryAfterSeconds: Number(retryAfter) } : {}),
    ...(serverAt === undefined ? {} : { serverAt }),
  };
}

/** Rejects a proxy's page. Refusals may be plain text, but successful responses never are. */
function refusePage(response: IncomingMessage, asked: Asked): void {
  if (isJson(response) || (response.statusCode ?? 0) >= 300) return;
  throw invalidAnswer(asked, `"${response.headers["content-type"] ?? ""}" instead of JSON`);
}

/** Matches the kind at the start of an API object whose rest is not parsed. */
const saysKind = /^.{0,200}?"(kind|apiVersion)"\s*:/s;

function isJson({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.includes("json") === true;
}

function toBody(response: IncomingMessage, text: string, asked: Asked): unknown {
  if (!isJson(response)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidAnswer(asked, "invalid JSON", error);
  }
}

function invalidAnswer(asked: Asked, found: string, cause?: unknown) {
  return new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot ${describeCall(asked)}: ${asked.server} responded with ${found}, check whether a proxy responds in its place`,
    { cause },
  );
}

function toEvent(line: string): KubeWatchEvent {
  try {
    const event = JSON.parse(line) as KubeWatchEvent;
    if (typeof event.object === "object" && event.object !== null) return event;
  } catch (error) {
    throw new LastcallError(
      "API_ANSWER_INVALID",
      `Cannot read a line of the watch: ${messageOf(error)}, expected a watch event in JSON`,
    );
  }
  throw new LastcallError(
    "API_ANSWER_INVALID",
    "Cannot read a line of the watch: it has no object, expected a watch event in JSON",
  );
}

function refusal(response: IncomingMessage, text: string): KubeWatchEvent {
  const status = response.statusCode ?? 0;
  try {
    const body = JSON.parse(text) as KubeObject;
    if (body?.kind === "Status") return { type: "ERROR", object: { code: status, ...body } };
  } catch {
    // Plain text, such as from priority and fairness: wrapped below.
  }
  return errorEvent(status, text.trim(), Number(response.headers["retry-after"]));
}

function errorEvent(code: number, message: string, retryAfterSeconds = Number.NaN): KubeWatchEvent {
  const details = retryAfterSeconds > 0 ? { details: { retryAfterSeconds } } : {};
  const object = { apiVersion: "v1", kind: "Status", status: "Failure", code, message, ...details };
  return { type: "ERROR", object };
}
