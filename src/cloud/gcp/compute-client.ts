import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/chance/chance.ts";
import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  textOf,
  trimmedTextOf,
} from "../../core/json/json-field.ts";
import { type Instant, type Millis, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import {
  type ApiEndpoint,
  exchange,
  type FaultMeaning,
  jsonObjectOf,
  parseApiEndpoint,
  patiently,
  type RestAnswer,
  type TokenSource,
  timeOf,
} from "../release/rest-exchange.ts";

export interface ComputeCall extends CallPurpose {
  readonly method: "GET" | "POST" | "DELETE";
  /** Default `v1`. */
  readonly version?: "v1" | "beta" | undefined;
  /** Relative to `/compute/v1`, such as `/projects/p/zones/z/instances/n`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  /** For calls that the server holds open; otherwise 30 seconds. */
  readonly timeoutMs?: Millis | undefined;
}

export type ComputeAnswer =
  | {
      readonly kind: "Found";
      readonly body: Readonly<Record<string, unknown>>;
      /** Google's time of the response. */
      readonly asOf?: Instant | undefined;
    }
  /** Compute Engine itself responded that there is no such resource. */
  | { readonly kind: "NotFound" };

interface ComputeClientOptions {
  readonly endpoint: ComputeEndpoint;
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

const requestTimeoutMs = seconds(30);

/**
 * The Compute Engine REST API v1 over a `fetch`, which keeps and pools connections; every response
 * is read to its end, so that its connection can be reused. No error contains a token.
 */
export class ComputeClient {
  readonly #options: ComputeClientOptions;

  constructor(options: ComputeClientOptions) {
    this.#options = options;
  }

  /**
   * Sends a call once. Throws `LastcallError` for every response except success and "not found",
   * and if there was none; rejects with the signal's reason when it aborts.
   */
  async send(call: ComputeCall, signal: AbortSignal): Promise<ComputeAnswer> {
    return interpret(await this.#exchange(call, signal), call);
  }

  /** Like `send`, for calls that may be repeated: retries transient faults. */
  sendPatiently(call: ComputeCall, signal: AbortSignal): Promise<ComputeAnswer> {
    return patiently(() => this.send(call, signal), this.#options, signal);
  }

  #exchange(call: ComputeCall, signal: AbortSignal): Promise<RestAnswer> {
    const { endpoint } = this.#options;
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const url = `${endpoint.baseUrl}/compute/${call.version ?? "v1"}${call.path}${query}`;
    const { method, body, timeoutMs = requestTimeoutMs } = call;
    const tools = { ...this.#options, noAnswer: (found: string) => noAnswer(call, found) };
    return exchange({ method, url, body, timeoutMs }, tools, signal);
  }
}

function interpret(answer: RestAnswer, call: ComputeCall): ComputeAnswer {
  const body = jsonObjectOf(answer.text);
  if (answer.status >= 200 && answer.status < 300) {
    if (body !== undefined) return { kind: "Found", body, asOf: timeOf(answer) };
    throw noAnswer(call, "a response that is not a JSON object");
  }
  if (answer.status === 404 && isAboutTheResource(body)) return { kind: "NotFound" };
  throw faultOfAnswer({ status: answer.status, body }, call);
}

/**
 * Whether a 404 is about the requested resource. One without Compute Engine's own error body came
 * from an intermediary, and "the project was not found" says nothing about a machine: taking either
 * for "gone" would end a departure whose machine is still running.
 */
function isAboutTheResource(body: unknown): boolean {
  const { reason, message } = readErrorBody(body);
  return reason === "notFound" && !/'projects\/[^/']+(\/(zones|regions)\/[^/']+)?'/.test(message);
}

function noAnswer(call: CallPurpose, found: string): LastcallError {
  const message = `Cannot ${call.action}: found ${found}, expected a response from Compute Engine`;
  return new LastcallError("CLOUD_UNREACHABLE", message);
}

interface ComputeList extends CallPurpose {
  /** The collection, such as `/projects/p/zones/z/instances`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The limit for each page; by default the client's. */
  readonly timeoutMs?: Millis;
  /** For lists over all places at once: the field with the items of each place. */
  readonly inEachPlace?: "instances";
}

/** `send` of a client, or `sendPatiently`. */
type Send = (call: ComputeCall, signal: AbortSignal) => Promise<ComputeAnswer>;

/** The page size, which is the API's maximum. */
const pageSize = "500";
/** 50,000 machines in one zone. More pages than that mean that the server repeats them. */
const mostPages = 100;

/**
 * The warnings of a page from which items are missing although the status is 200. Source: the
 * values of `warning.code` in the discovery document of the API.
 */
const incomplete = new Set(["UNREACHABLE", "PARTIAL_SUCCESS", "LIST_OVERHEAD_QUOTA_EXCEED"]);

/**
 * Yields the items of a list, page by page; a caller that has enough stops reading. Skips items
 * that are not objects. Throws `LastcallError` for a call that fails, for a response that is not a
 * list, and for one place's list from which Compute Engine says that items are missing.
 */
export async function* listItems(
  send: Send,
  list: ComputeList,
  signal: AbortSignal,
): AsyncGenerator<Fields> {
  let pageToken: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const { path, action, permission, timeoutMs } = list;
    const token = pageToken === undefined ? {} : { pageToken };
    const query = { maxResults: pageSize, ...list.query, ...token };
    const call = { method: "GET", path, query, action, permission, timeoutMs } as const;
    const answer = await send(call, signal);
    if (answer.kind === "NotFound") throw unreadable(list, "the answer 404");
    const { items, nextPageToken, warning } = answer.body;
    yield* itemsOf(list, items);
    const code = textOf(fieldsOf(warning).code) ?? "";
    if (list.inEachPlace === undefined && incomplete.has(code)) {
      throw unreadable(list, `the warning ${code}`);
    }
    pageToken = trimmedTextOf(nextPageToken);
    if (pageToken === undefined) return;
  }
  throw unreadable(list, `more than ${mostPages} pages`);
}

function itemsOf(list: ComputeList, items: unknown = []): readonly Fields[] {
  const { inEachPlace } = list;
  if (inEachPlace !== undefined && isFields(items)) {
    return Object.values(items).flatMap((place) =>
      listOf(fieldsOf(place)[inEachPlace]).map(fieldsOf),
    );
  }
  if (!Array.isArray(items)) throw unreadable(list, "items that are not a list");
  return items.filter(isFields);
}

function unreadable({ action }: ComputeList, found: string): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ${action}: found ${found}, expected a complete list`,
  );
}

/** The address of Compute Engine unless `--gcp-endpoint` sets another. */
export const defaultComputeEndpoint = "https://compute.googleapis.com";

/** `/compute/v1/…` is appended to its base. */
export type ComputeEndpoint = ApiEndpoint;

/** Reads the value of `--gcp-endpoint`. Throws CONFIG_INVALID. */
export function parseComputeEndpoint(text: string): ComputeEndpoint {
  return parseApiEndpoint("--gcp-endpoint", text);
}

/** The purpose of a call, for its error message. */
interface CallPurpose {
  /** Completes "Cannot …", such as `read the instance p/z/n`. */
  readonly action: string;
  /** The IAM permission that it needs, such as `compute.instances.get`. */
  readonly permission: string;
}

/** A refusal by Compute Engine: an HTTP error, or an operation that ended in one. */
interface ComputeRefusal {
  readonly status: number;
  /**
   * `rateLimitExceeded` of an answer or `RATE_LIMIT_EXCEEDED` of an operation; empty if it had
   * none.
   */
  readonly reason: string;
  readonly message: string;
}

/** Transient reasons: the machine or its disk is busy with another operation. */
const busy = new Set(["resourceinusebyanotherresource", "resourcenotready", "resourceinuse"]);
const overRate = new Set(["ratelimitexceeded", "userratelimitexceeded"]);

/**
 * Converts a refusal to an error. Statuses and reasons are as observed on the real service and
 * recorded in the platform notes of docs/cloud/gcp.md; note that a rate limit comes as 403.
 */
export function faultOfAnswer(
  answer: { readonly status: number; readonly body: unknown },
  purpose: CallPurpose,
): LastcallError {
  return faultOf({ status: answer.status, ...readErrorBody(answer.body) }, purpose);
}

/** Converts an operation that is DONE and failed to an error; undefined if it did not fail. */
export function faultOfOperation(
  operation: Readonly<Record<string, unknown>>,
  purpose: CallPurpose,
): LastcallError | undefined {
  const errors = field(operation.error, "errors");
  const first = Array.isArray(errors) ? errors[0] : undefined;
  const status = operation.httpErrorStatusCode;
  if (first === undefined && typeof status !== "number") return undefined;
  const message = text(field(first, "message")) || text(operation.httpErrorMessage);
  const refusal = {
    status: typeof status === "number" ? status : 400,
    reason: text(field(first, "code")),
    message,
  };
  return faultOf(refusal, purpose);
}

/**
 * The reason and message of an error body:
 * `{"error":{"code":403,"message":"…","errors":[{"domain":"…","reason":"rateLimitExceeded"}]}}`.
 */
function readErrorBody(body: unknown): { reason: string; message: string } {
  const error = field(body, "error");
  const errors = field(error, "errors");
  const first = Array.isArray(errors) ? errors[0] : undefined;
  return { reason: text(field(first, "reason")), message: text(field(error, "message")) };
}

function faultOf(refusal: ComputeRefusal, purpose: CallPurpose): LastcallError {
  const { code, retryable, wanted } = judge(refusal, purpose);
  const answer = [refusal.status, refusal.reason].filter((part) => part !== "").join(" ");
  const quoted = refusal.message === "" ? "" : ` (${refusal.message.replace(/\.\s*$/, "")})`;
  return new LastcallError(
    code,
    `Cannot ${purpose.action}: Compute Engine answered ${answer}${quoted}, expected ${wanted}`,
    retryable === undefined ? {} : { retryable },
  );
}

function judge(refusal: ComputeRefusal, purpose: CallPurpose): FaultMeaning {
  const { status } = refusal;
  const reason = refusal.reason.replaceAll("_", "").toLowerCase();
  if (status === 429 || overRate.has(reason)) {
    return { code: "CLOUD_RATE_LIMITED", wanted: "a lower request rate" };
  }
  if (status >= 500 || status === 408) {
    return { code: "CLOUD_UNREACHABLE", wanted: "a successful response; retrying" };
  }
  if (status >= 300 && status < 400) {
    return { code: "CLOUD_UNREACHABLE", wanted: "a response without a redirect" };
  }
  if (status === 401) {
    return { code: "CLOUD_CREDENTIALS", wanted: "an access token that Compute Engine accepts" };
  }
  if (status === 403) return judgeForbidden(reason, { refusal, purpose });
  return judgeRefused(status, reason);
}

function judgeForbidden(
  reason: string,
  context: { readonly refusal: ComputeRefusal; readonly purpose: CallPurpose },
): FaultMeaning {
  if (reason === "accessnotconfigured") {
    return { code: "CLOUD_REFUSED", wanted: "the Compute Engine API enabled in the project" };
  }
  const named = /'(compute\.[A-Za-z.]+)'/.exec(context.refusal.message)?.[1];
  const permission = named ?? context.purpose.permission;
  return { code: "CLOUD_RIGHT_MISSING", wanted: `the permission ${permission}` };
}

function judgeRefused(status: number, reason: string): FaultMeaning {
  if (busy.has(reason)) {
    return {
      code: "CLOUD_REFUSED",
      retryable: true,
      wanted: "no other operation on the machine; retrying",
    };
  }
  if (status === 409) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "no other change under way" };
  }
  if (status === 404) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "the resource to exist" };
  }
  if (reason === "invalidresourceusage") {
    return { code: "CLOUD_REFUSED", wanted: "a machine without deletion protection" };
  }
  return { code: "CLOUD_REFUSED", wanted: "the request to be accepted" };
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
