import type { Clock } from "../../contracts/clock.ts";
import { type Fields, isFields, parseJson } from "../../core/json/json-field.ts";
import type { Millis } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";

/** Where access tokens come from. */
export interface TokenSource {
  /** A token that is good now; undefined where requests go out without one. */
  token(): Promise<string | undefined>;
  /** Drops what is kept: the cloud refused the last token. */
  forget(): void;
}

/** For an endpoint on loopback without credentials: requests carry no token. */
export const noTokens: TokenSource = {
  token: () => Promise.resolve(undefined),
  forget: () => undefined,
};

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
   * The fault of a request that got no answer; `found` says why, such as "no answer within 30 s".
   */
  readonly noAnswer: (found: string) => LastcallError;
}

/**
 * Sends a request to a cloud's API once, with a token, and gives whatever the cloud answered, read
 * to its end so that the connection can be used again. Throws the tools' fault where there was no
 * answer, and the signal's reason when it aborts. No error holds a token.
 */
export async function exchange(
  request: RestRequest,
  options: RestOptions,
  signal: AbortSignal,
): Promise<RestAnswer> {
  signal.throwIfAborted();
  const { timeoutMs } = request;
  const timeout = new AbortController();
  const finished = new AbortController();
  const timer = options.clock.sleep(timeoutMs, finished.signal);
  void timer.then(() => timeout.abort()).catch(() => undefined);
  try {
    return await roundTrip(request, options, AbortSignal.any([signal, timeout.signal]));
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.signal.aborted) throw options.noAnswer(`no answer within ${timeoutMs / 1000} s`);
    if (isLastcallError(error)) throw error;
    throw options.noAnswer(`the connection failed (${connectionFault(error)})`);
  } finally {
    finished.abort();
  }
}

async function roundTrip(
  { method, url, body }: RestRequest,
  { tokens, fetch: send }: RestOptions,
  signal: AbortSignal,
): Promise<RestAnswer> {
  const headers: Record<string, string> = { accept: "application/json" };
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

/** The body as an object; undefined where it is none. */
export function jsonObjectOf(text: string): Fields | undefined {
  const value = parseJson(text)?.value;
  return isFields(value) ? value : undefined;
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

/** Only the code: the text of a foreign error may hold more than belongs into a log. */
function connectionFault(error: unknown): string {
  const cause = (error as { readonly cause?: { readonly code?: unknown } } | undefined)?.cause;
  return typeof cause?.code === "string" ? cause.code : "no further notice";
}

export interface ApiEndpoint {
  /** Without a trailing slash; the API's own path is appended. */
  readonly baseUrl: string;
  /** Plain HTTP to this machine: our server for tests, or a proxy beside us. */
  readonly loopback: boolean;
}

/**
 * Reads the value of an option such as `--gcp-endpoint`: `https://compute.example.internal` or
 * `http://127.0.0.1:8090`. A token must never cross a network in clear text, so plain HTTP is taken
 * for loopback only. Throws CONFIG_INVALID.
 */
export function parseApiEndpoint(option: string, text: string): ApiEndpoint {
  const invalid = (found: string): LastcallError => {
    const wanted = "expected an https URL, or http on a loopback address";
    return new LastcallError("CONFIG_INVALID", `Cannot use ${option}: ${found}, ${wanted}`);
  };
  if (!URL.canParse(text)) throw invalid("found text that is no URL");
  const url = new URL(text);
  // Whoever writes a password into the address would find it in a log: do not repeat the address.
  if (url.username !== "" || url.password !== "") throw invalid("found credentials in the URL");
  if (url.search !== "" || url.hash !== "") throw invalid(`found a query or fragment in ${text}`);
  const loopback = url.protocol === "http:" && isLoopback(url.hostname);
  if (url.protocol !== "https:" && !loopback) throw invalid(`found ${url.origin}`);
  return { baseUrl: url.origin + url.pathname.replace(/\/+$/, ""), loopback };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
