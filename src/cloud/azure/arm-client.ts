import type { Clock } from "../../contracts/clock.ts";
import { type BackoffLimits, backoffMs, type Rng } from "../../core/chance/chance.ts";
import {
  type Fields,
  fieldsOf,
  listOf,
  textOf,
  trimmedTextOf,
} from "../../core/json/json-field.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import type { ReleaseBounds } from "../release/release-loop.ts";
import {
  type ApiEndpoint,
  exchange,
  type FaultMeaning,
  jsonObjectOf,
  patiently,
  type RestAnswer,
  type TokenSource,
} from "../release/rest-exchange.ts";

export interface ArmCall extends ArmPurpose {
  readonly method: "GET" | "POST" | "DELETE";
  /**
   * A resource id, such as `/subscriptions/S/resourceGroups/G/…`, or the URL of an operation or
   * page.
   */
  readonly path: string;
  /** Undefined if `path` is a whole URL. */
  readonly apiVersion?: string | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

type ArmAnswer =
  | {
      readonly kind: "Found";
      readonly status: number;
      readonly body: Fields;
      readonly headers: Headers;
    }
  /** Azure itself said that the resource does not exist. */
  | { readonly kind: "NotFound" };

interface ArmClientOptions {
  readonly endpoint: ApiEndpoint;
  readonly tokens: TokenSource;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

const timeoutMs = seconds(30);

/** Azure Resource Manager over a `fetch`. */
export class ArmClient {
  readonly #options: ArmClientOptions;

  constructor(options: ArmClientOptions) {
    this.#options = options;
  }

  /** Sends a call once. Throws `LastcallError` for any answer other than success or "not found". */
  async send(call: ArmCall, signal: AbortSignal): Promise<ArmAnswer> {
    return interpret(await this.#exchange(call, signal), call);
  }

  /** Like `send`, for calls that may be repeated: retries transient faults. */
  sendPatiently(call: ArmCall, signal: AbortSignal): Promise<ArmAnswer> {
    return patiently(() => this.send(call, signal), this.#options, signal);
  }

  #exchange(call: ArmCall, signal: AbortSignal): Promise<RestAnswer> {
    const { method, body } = call;
    const tools = { ...this.#options, noAnswer: (found: string) => noAnswer(call, found) };
    return exchange({ method, url: this.#urlOf(call), body, timeoutMs }, tools, signal);
  }

  /** The token is sent only to the endpoint, whatever URL an answer names. */
  #urlOf({ path, apiVersion, query, action }: ArmCall): string {
    const { baseUrl } = this.#options.endpoint;
    if (path.startsWith("/")) {
      const asked = new URLSearchParams({ ...query, "api-version": apiVersion ?? "" });
      return `${baseUrl}${path}?${asked}`;
    }
    if (URL.canParse(path) && new URL(path).origin === new URL(baseUrl).origin) return path;
    throw new LastcallError(
      "CLOUD_REFUSED",
      `Cannot ${action}: Azure returned a URL of another host, expected one of ${baseUrl}`,
    );
  }
}

/** `Retry-After` in seconds; Resource Manager never sends a date. */
function retryAfterMs(headers: Headers): Millis | undefined {
  const asked = Number(headers.get("retry-after") ?? "");
  return Number.isFinite(asked) && asked > 0 ? seconds(asked) : undefined;
}

function interpret(answer: RestAnswer, call: ArmCall): ArmAnswer {
  const { status, text, headers } = answer;
  const body = jsonObjectOf(text);
  if (status >= 200 && status < 300) {
    // Accepted and completed requests are often answered without a body.
    if (body !== undefined || text === "") {
      return { kind: "Found", status, body: body ?? {}, headers };
    }
    throw noAnswer(call, "a response that is not a JSON object");
  }
  const error = readArmError(body);
  if (status === 404 && isAboutTheResource(error.code)) return { kind: "NotFound" };
  throw faultOfArm({ status, ...error, retryAfterMs: retryAfterMs(headers) }, call);
}

/**
 * Whether a 404 is about the requested resource, or the one that contains it: a node pool is
 * deleted with its scale set. One without Azure's own error came from something in between, and a
 * missing resource group or subscription says nothing about a machine: if either were taken for
 * "gone", a departure would end while its machine still runs.
 */
function isAboutTheResource(code: string): boolean {
  return /^(ResourceNotFound|ParentResourceNotFound|NotFound|InstanceIdNotFound)$/.test(code);
}

function noAnswer({ action }: ArmPurpose, found: string): LastcallError {
  const message = `Cannot ${action}: found ${found}, expected a response from Azure`;
  return new LastcallError("CLOUD_UNREACHABLE", message);
}

/** Yields every item of a list, page by page. */
export async function* armItems(
  client: ArmClient,
  call: ArmCall,
  signal: AbortSignal,
): AsyncGenerator<Fields> {
  let next: ArmCall | undefined = call;
  while (next !== undefined) {
    const answer = await client.sendPatiently(next, signal);
    if (answer.kind === "NotFound") return;
    const { value, nextLink } = answer.body;
    yield* listOf(value).map(fieldsOf);
    const path = trimmedTextOf(nextLink);
    const { action, permission } = call;
    if (path === next.path) throw noAnswer(call, "a page that names itself as the next one");
    next = path === undefined ? undefined : { method: "GET", path, action, permission };
  }
}

interface ArmWait {
  readonly client: ArmClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** What the operation does. */
  readonly purpose: ArmPurpose;
}

/** The pauses if Azure does not say how long to wait. */
const pollRule: BackoffLimits = { firstMs: seconds(2), mostMs: seconds(15) };
const longestPauseMs = seconds(60);

/**
 * Waits for the operation that an answer of 201 or 202 has started, by its `Azure-AsyncOperation`
 * or else its `Location`, polling as often as `Retry-After` says. Throws the error of an operation
 * that failed. Also returns at the limit, or if the operation may not be read: then only the
 * machine's own state tells.
 */
export async function awaitArmOperation(
  started: ArmAnswer,
  wait: ArmWait,
  { giveUpAt, signal }: ReleaseBounds,
): Promise<void> {
  let answer = started;
  const url = operationUrlOf(started);
  if (url === undefined) return;
  const { client, clock, rng, purpose } = wait;
  for (let round = 0; clock.monotonic() < giveUpAt; round++) {
    await clock.sleep(pauseAfter(answer, backoffMs(round, rng, pollRule)), signal);
    const next = await readOperation(url.path, { client, purpose, signal });
    if (next === undefined) return;
    answer = next;
    if (isOver(answer, { by: url.by, purpose })) return;
  }
}

type Follows = "Status" | "Location";

function operationUrlOf(
  answer: ArmAnswer,
): { readonly by: Follows; readonly path: string } | undefined {
  if (answer.kind === "NotFound" || answer.status === 200 || answer.status === 204)
    return undefined;
  const status = answer.headers.get("azure-asyncoperation");
  if (status !== null) return { by: "Status", path: status };
  const location = answer.headers.get("location");
  return location === null ? undefined : { by: "Location", path: location };
}

function pauseAfter(answer: ArmAnswer, ownMs: Millis): Millis {
  const asked = answer.kind === "Found" ? retryAfterMs(answer.headers) : undefined;
  return millis(Math.min(asked ?? ownMs, longestPauseMs));
}

async function readOperation(
  path: string,
  by: { readonly client: ArmClient; readonly purpose: ArmPurpose; readonly signal: AbortSignal },
): Promise<ArmAnswer | undefined> {
  const permission = "to read the operation";
  const action = `follow the operation to ${by.purpose.action}`;
  try {
    const call = { method: "GET", path, action, permission } as const;
    const answer = await by.client.sendPatiently(call, by.signal);
    return answer.kind === "NotFound" ? undefined : answer;
  } catch (error) {
    // An operation that may not be read has not failed.
    if (isLastcallError(error) && !error.retryable) return undefined;
    throw error;
  }
}

/** Throws the error of an operation that failed. */
function isOver(
  answer: ArmAnswer,
  { by, purpose }: { readonly by: Follows; readonly purpose: ArmPurpose },
): boolean {
  if (answer.kind === "NotFound") return true;
  const status = textOf(answer.body.status) ?? "";
  if (/^(Failed|Canceled)$/i.test(status)) {
    const { code, message } = readArmError(answer.body);
    throw faultOfArm({ code: code || status, message }, purpose);
  }
  return by === "Location" ? answer.status !== 202 : /^Succeeded$/i.test(status);
}

/** The purpose of a call to Azure Resource Manager, for its error message. */
interface ArmPurpose {
  /** Completes "Cannot …". */
  readonly action: string;
  /** The Azure RBAC action that the call needs. */
  readonly permission: string;
}

/** A refusal by Resource Manager: the `error` of an answer, or that of an operation that failed. */
export interface ArmRefusal {
  /** Undefined if the operation itself failed. */
  readonly status?: number | undefined;
  readonly code: string;
  readonly message: string;
  readonly retryAfterMs?: Millis | undefined;
}

interface KnownCode extends FaultMeaning {
  readonly name: RegExp;
}

/**
 * By Resource Manager's code, which is more specific than the status. Source: Azure's list of
 * common errors.
 */
const known: readonly KnownCode[] = [
  {
    name: /^(TooManyRequests|OperationThrottled|Throttl\w*|SubscriptionRequestsThrottled)$/,
    code: "CLOUD_RATE_LIMITED",
    wanted: "a lower request rate",
  },
  {
    name: /^(AuthorizationFailed|LinkedAuthorizationFailed)$/,
    code: "CLOUD_RIGHT_MISSING",
    wanted: "the permission",
  },
  {
    name: /^(InvalidAuthenticationToken\w*|ExpiredAuthenticationToken|AuthenticationFailed\w*)$/,
    code: "CLOUD_CREDENTIALS",
    wanted: "a token that Azure accepts",
  },
  { name: /^ScopeLocked$/, code: "CLOUD_REFUSED", wanted: "no lock on the resource" },
  {
    name: /^RequestDisallowedByPolicy$/,
    code: "CLOUD_REFUSED",
    wanted: "no Azure policy that forbids it",
  },
  {
    name: /^(OperationNotAllowed|AnotherOperationInProgress|Conflict\w*|EtagMismatch|OperationPreempted|ControlPlaneNotFound)$/,
    code: "CLOUD_REFUSED",
    retryable: true,
    wanted: "no other operation under way; retrying",
  },
  {
    name: /^Internal\w*Error$|^ServiceUnavailable$|^GatewayTimeout$/,
    code: "CLOUD_UNREACHABLE",
    wanted: "a successful response; retrying",
  },
];

function faultOfArm(refusal: ArmRefusal, purpose: ArmPurpose): LastcallError {
  const { code, retryable, wanted } = judge(refusal);
  const { status, message, retryAfterMs } = refusal;
  const words = [status, refusal.code].filter((word) => word !== undefined && word !== "");
  const told = message
    .replaceAll(/\s+/g, " ")
    .slice(0, 200)
    .replace(/\.\s*$/, "");
  const quoted = told === "" ? "" : ` (${told})`;
  const named = code === "CLOUD_RIGHT_MISSING" ? `the permission ${purpose.permission}` : wanted;
  return new LastcallError(
    code,
    `Cannot ${purpose.action}: Azure answered ${words.join(" ")}${quoted}, expected ${named}`,
    { retryAfterMs, ...(retryable === undefined ? {} : { retryable }) },
  );
}

/** The `error` of a body: `{"error":{"code":"…","message":"…"}}`. */
function readArmError(body: unknown): Pick<ArmRefusal, "code" | "message"> {
  const { code, message } = fieldsOf(fieldsOf(body).error);
  return { code: textOf(code) ?? "", message: textOf(message) ?? "" };
}

function judge({ status, code }: ArmRefusal): FaultMeaning {
  const found = known.find(({ name }) => name.test(code));
  if (found !== undefined) return found;
  if (status === undefined) return { code: "CLOUD_REFUSED", wanted: "the operation to succeed" };
  if (status === 429) return { code: "CLOUD_RATE_LIMITED", wanted: "a lower request rate" };
  if (status >= 500 || status === 408) {
    return { code: "CLOUD_UNREACHABLE", wanted: "a successful response; retrying" };
  }
  if (status >= 300 && status < 400) {
    return { code: "CLOUD_UNREACHABLE", wanted: "a response without a redirect" };
  }
  if (status === 401) return { code: "CLOUD_CREDENTIALS", wanted: "a token that Azure accepts" };
  if (status === 403) return { code: "CLOUD_RIGHT_MISSING", wanted: "the permission" };
  if (status === 409 || status === 412) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "no other change under way" };
  }
  if (status === 404) {
    return { code: "CLOUD_REFUSED", retryable: true, wanted: "the resource to exist" };
  }
  return { code: "CLOUD_REFUSED", wanted: "the request to be accepted" };
}
