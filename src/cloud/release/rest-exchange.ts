import type { Clock } from "../../contracts/clock.ts";
import { untilAborted, withinTime } from "../../contracts/time-limit.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { type Fields, isFields, parseJson } from "../../core/json/json-field.ts";
import { type Instant, type Millis, millis, parseHttpDate, seconds } from "../../core/time/time.ts";
import { type ErrorCode, isLastcallError, LastcallError } from "../../errors.ts";

/** A source of access tokens. */
export interface TokenSource {
  /** A valid token; undefined if requests need none. */
  token(): Promise<string | undefined>;
  /** Drops the cached token, which the cloud has rejected. */
  forget(): void;
}

/** For an endpoint on loopback without credentials: requests carry no token. */
export const noTokens: TokenSource = {
  token: () => Promise.resolve(undefined),
  forget: () => undefined,
};

/** What a cloud's refusal means, and what was expected instead. */
export interface FaultMeaning {
  readonly code: ErrorCode;
  readonly retryable?: boolean;
  readonly wanted: string;
}

export interface RestRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly timeoutMs: Millis;
}

export interface RestAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export interface RestOptions {
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /**
   * The error for a request without a response; `found` is the reason, such as
   * "no response within 30 s".
   */
  readonly noAnswer: (found: string) => LastcallError;
}

/**
 * Sends a request to a cloud's API, with a token, and returns the response, read to its end so that
 * the connection can be reused. A token that is rejected may have been revoked before it expires,
 * so the request is sent once more with a new one. Throws `noAnswer` if there is no response, and
 * the signal's reason when it aborts. No error contains a token.
 */
export async function exchange(
  request: RestRequest,
  options: RestOptions,
  signal: AbortSignal,
): Promise<RestAnswer> {
  const first = await exchangeOnce(request, options, signal);
  if (first.status !== 401) return first;
  options.tokens.forget();
  return exchangeOnce(request, options, signal);
}

async function exchangeOnce(
  request: RestRequest,
  options: RestOptions,
  signal: AbortSignal,
): Promise<RestAnswer> {
  const { timeoutMs: limitMs } = request;
  const late = () => options.noAnswer(`no response within ${limitMs / 1000} s`);
  try {
    const work = (until: AbortSignal) => roundTrip(request, options, until);
    return await withinTime(work, { clock: options.clock, limitMs, late }, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (isLastcallError(error)) throw error;
    throw options.noAnswer(`the connection failed (${connectionFault(error)})`);
  }
}

async function roundTrip(
  { method, url, body }: RestRequest,
  { tokens, fetch: send }: RestOptions,
  signal: AbortSignal,
): Promise<RestAnswer> {
  const headers: Record<string, string> = { accept: "application/json" };
  // The token library does not support signals.
  const token = await untilAborted(tokens.token(), signal);
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  const init: RequestInit = { method, headers, signal, redirect: "manual" };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  const response = await send(url, init);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/**
 * Four attempts with pauses of 1.5 to 3 s in total, enough for a lost connection but not for an
 * outage, or as long as the cloud asks for, up to 15 s each.
 */
const attempts = 4;
const retryRule = { firstMs: seconds(0.5), mostMs: seconds(4) };
const longestRetryAfterMs = seconds(15);

/** Makes a call that may be repeated, and repeats it after transient faults. */
export async function patiently<T>(
  call: () => Promise<T>,
  { clock, rng }: { readonly clock: Clock; readonly rng: Rng },
  signal: AbortSignal,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    let askedMs = 0;
    try {
      return await call();
    } catch (error) {
      const again = isLastcallError(error) && error.retryable && attempt + 1 < attempts;
      if (!again) throw error;
      askedMs = Math.min(error.retryAfterMs ?? 0, longestRetryAfterMs);
    }
    await clock.sleep(millis(Math.max(askedMs, backoffMs(attempt, rng, retryRule))), signal);
  }
}

/** The cloud's own time of a response, in whole seconds; undefined if it does not say. */
export function timeOf({ headers }: Pick<RestAnswer, "headers">): Instant | undefined {
  return parseHttpDate(headers.get("date") ?? "");
}

/** Parses a JSON object; undefined for anything else. */
export function jsonObjectOf(text: string): Fields | undefined {
  const value = parseJson(text)?.value;
  return isFields(value) ? value : undefined;
}

/** Only the error code, because the text of a foreign error may contain secrets. */
function connectionFault(error: unknown): string {
  const cause = (error as { readonly cause?: { readonly code?: unknown } } | undefined)?.cause;
  return typeof cause?.code === "string" ? cause.code : "no error code";
}

export interface ApiEndpoint {
  /** Without a trailing slash; the API's own path is appended. */
  readonly baseUrl: string;
  /** Plain HTTP to this machine: a test server or a local proxy. */
  readonly loopback: boolean;
}

/**
 * Parses an option such as `--gcp-endpoint`: `https://compute.example.internal` or
 * `http://127.0.0.1:8090`. Plain HTTP is accepted for loopback only, because a token must never
 * cross a network in clear text. Throws CONFIG_INVALID.
 */
export function parseApiEndpoint(option: string, text: string): ApiEndpoint {
  const invalid = (found: string): LastcallError => {
    const wanted = "expected an https URL, or http on a loopback address";
    return new LastcallError("CONFIG_INVALID", `Cannot use ${option}: ${found}, ${wanted}`);
  };
  if (!URL.canParse(text)) throw invalid("found text that is not a URL");
  const url = new URL(text);
  // The message does not repeat an address that contains a password.
  if (url.username !== "" || url.password !== "") throw invalid("found credentials in the URL");
  if (url.search !== "" || url.hash !== "") throw invalid(`found a query or fragment in ${text}`);
  const loopback = url.protocol === "http:" && isLoopback(url.hostname);
  if (url.protocol !== "https:" && !loopback) throw invalid(`found ${url.origin}`);
  return { baseUrl: url.origin + url.pathname.replace(/\/+$/, ""), loopback };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
