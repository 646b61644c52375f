import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import type { ComputeEndpoint } from "./compute-endpoint.ts";
import { type CallPurpose, faultOfAnswer, readErrorBody } from "./compute-fault.ts";
import type { TokenSource } from "./google-auth.ts";

export interface ComputeCall extends CallPurpose {
  readonly method: "GET" | "POST" | "DELETE";
  /** `v1` where absent. */
  readonly version?: "v1" | "beta" | undefined;
  /** Below `/compute/v1`, such as `/projects/p/zones/z/instances/n`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  /** For calls that the server holds open; 30 seconds otherwise. */
  readonly timeoutMs?: Millis | undefined;
}

export type ComputeAnswer =
  | { readonly kind: "Found"; readonly body: Readonly<Record<string, unknown>> }
  /** The cloud itself said that there is no such resource. */
  | { readonly kind: "NotFound" };

export interface ComputeClientOptions {
  readonly endpoint: ComputeEndpoint;
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

const requestTimeoutMs = seconds(30);
/** Four attempts over about 1.5 to 3 s of pauses: enough for a lost connection, not for an outage. */
const attempts = 4;
const retryRule = { firstMs: seconds(0.5), mostMs: seconds(4) };

/**
 * The Compute Engine REST API v1 over a `fetch`. Connections are kept and pooled by `fetch`; every
 * answer is read to its end, so that its connection can be used again. No error holds a token.
 */
export class ComputeClient {
  readonly #options: ComputeClientOptions;

  constructor(options: ComputeClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a call once. Throws `LastcallError` for every answer but success and "not found", and
   * when there was none; rejects with the signal's reason when it aborts.
   */
  async send(call: ComputeCall, signal: AbortSignal): Promise<ComputeAnswer> {
    const first = await this.#exchange(call, signal);
    if (first.status !== 401) return interpret(first, call);
    // A token can be withdrawn before its time is up: ask once with a fresh one.
    this.#options.tokens.forget();
    return interpret(await this.#exchange(call, signal), call);
  }

  /** As `send`, for calls that may be repeated: faults that can pass are tried again, four times in all. */
  async sendPatiently(call: ComputeCall, signal: AbortSignal): Promise<ComputeAnswer> {
    const { clock, rng } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.send(call, signal);
      } catch (error) {
        const again = isLastcallError(error) && error.retryable && attempt + 1 < attempts;
        if (!again) throw error;
      }
      await clock.sleep(backoffMs(attempt, rng, retryRule), signal);
    }
  }

  async #exchange(call: ComputeCall, signal: AbortSignal): Promise<RawAnswer> {
    signal.throwIfAborted();
    const timeoutMs = call.timeoutMs ?? requestTimeoutMs;
    const timeout = new AbortController();
    const finished = new AbortController();
    const timer = this.#options.clock.sleep(timeoutMs, finished.signal);
    void timer.then(() => timeout.abort()).catch(() => undefined);
    try {
      return await this.#roundTrip(call, AbortSignal.any([signal, timeout.signal]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.signal.aborted) throw noAnswer(call, `no answer within ${timeoutMs / 1000} s`);
      if (isLastcallError(error)) throw error;
      throw noAnswer(call, `the connection failed (${connectionFault(error)})`);
    } finally {
      finished.abort();
    }
  }

  async #roundTrip(call: ComputeCall, signal: AbortSignal): Promise<RawAnswer> {
    const { endpoint, tokens, fetch: send } = this.#options;
    const headers: Record<string, string> = { accept: "application/json" };
    const token = await untilAborted(tokens.token(), signal);
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const init: RequestInit = { method: call.method, headers, signal, redirect: "manual" };
    if (call.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(call.body);
    }
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const place = `${endpoint.baseUrl}/compute/${call.version ?? "v1"}`;
    const response = await send(`${place}${call.path}${query}`, init);
    return { status: response.status, text: await response.text() };
  }
}

/** Tokens come from a library that takes no signal; what comes after an abort is dropped. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

interface RawAnswer {
  readonly status: number;
  readonly text: string;
}

function interpret(answer: RawAnswer, call: ComputeCall): ComputeAnswer {
  const body = parseObject(answer.text);
  if (answer.status >= 200 && answer.status < 300) {
    if (body !== undefined) return { kind: "Found", body };
    throw noAnswer(call, "an answer that is no JSON object");
  }
  if (answer.status === 404 && isAboutTheResource(body)) return { kind: "NotFound" };
  throw faultOfAnswer({ status: answer.status, body }, call);
}

/**
 * Whether a 404 speaks of the resource asked for. One without Compute Engine's own error body came
 * from something in between, and "the project was not found" says nothing about a machine: taking
 * either for "gone" would end a departure whose machine still runs.
 */
function isAboutTheResource(body: unknown): boolean {
  const { reason, message } = readErrorBody(body);
  return reason === "notFound" && !/'projects\/[^/']+(\/(zones|regions)\/[^/']+)?'/.test(message);
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

function noAnswer(call: CallPurpose, found: string): LastcallError {
  const message = `Cannot ${call.action}: found ${found}, expected an answer of Compute Engine`;
  return new LastcallError("CLOUD_UNREACHABLE", message);
}

/** Only the code: the text of a foreign error may hold more than belongs into a log. */
function connectionFault(error: unknown): string {
  const cause = (error as { readonly cause?: { readonly code?: unknown } } | undefined)?.cause;
  return typeof cause?.code === "string" ? cause.code : "no further instanceNotice";
}
