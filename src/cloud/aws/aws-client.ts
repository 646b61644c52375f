import http from "node:http";
import https from "node:https";
import { PassThrough, pipeline, type Readable } from "node:stream";
import type { Millis } from "../../core/time/time.ts";
import { type ErrorCode, isLastcallError, LastcallError, messageOf } from "../../errors.ts";

/** How many requests of a client are under way at the most, as the client itself has it. */
const maxSockets = 50;

const silentLog = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** How each of AWS' clients is set. `region` absent: as the client finds it in its environment. */
export function clientSettings({
  region,
  answerLimitMs,
  maxAttempts = 2,
}: {
  readonly region: string | undefined;
  /** Within this an answer begins, and within the same again it has ended. */
  readonly answerLimitMs: Millis;
  /** By the client itself; one where a request must not be sent twice without a look in between. */
  readonly maxAttempts?: number;
}) {
  return {
    ...(region === undefined ? {} : { region }),
    // The caller tries again, and says so.
    maxAttempts,
    logger: silentLog,
    requestHandler: {
      connectionTimeout: 3000,
      requestTimeout: answerLimitMs,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets, ...proxyOf(http.globalAgent) },
      httpsAgent: { keepAlive: true, maxSockets, ...proxyOf(https.globalAgent) },
    },
    extensions: [boundedAnswers(answerLimitMs)],
  };
}

/**
 * Node's own agents go by the proxies of the environment where NODE_USE_ENV_PROXY is set; those
 * that a client makes for itself would go past them.
 */
function proxyOf(agent: http.Agent) {
  const { proxyEnv } = (agent as { readonly options?: http.AgentOptions }).options ?? {};
  return proxyEnv === undefined ? {} : { proxyEnv };
}

/** More than any page of AWS' APIs; what is longer is not read further. */
const mostBytes = 32 * 1024 * 1024;

/** As much of the client's own handler of requests as is changed. */
interface Handler {
  handle(...asked: readonly unknown[]): Promise<{ response: { body?: unknown } }>;
}

interface HandlerSettings {
  httpHandler(): object;
  setHttpHandler(handler: never): void;
}

/**
 * The client's own time-outs end with the head of an answer: a body that stalls, or never ends,
 * would be waited for and kept in memory for ever, and with it all that reads once at a time.
 */
function boundedAnswers(limitMs: Millis) {
  return {
    configure(settings: HandlerSettings): void {
      const inner = settings.httpHandler() as Handler;
      const handle = inner.handle.bind(inner);
      inner.handle = async (...asked) => {
        const answer = await handle(...asked);
        const { body } = answer.response;
        if (isOpen(body)) answer.response.body = bounded(body, limitMs);
        return answer;
      };
    },
  };
}

/** Most answers are there as a whole when their head is read. */
function isOpen(body: unknown): body is Readable {
  const { complete } = (body ?? {}) as { readonly complete?: unknown };
  return complete === false;
}

function bounded(body: Readable, limitMs: Millis): Readable {
  let bytes = 0;
  const limited = new PassThrough({
    transform(part: Buffer, _, done) {
      bytes += part.byteLength;
      if (bytes > mostBytes) done(new Error(`the answer is over ${mostBytes / 1024 / 1024} MiB`));
      else done(null, part);
    },
  });
  const late = AbortSignal.timeout(limitMs);
  const abort = () => limited.destroy(timedOut(limitMs));
  late.addEventListener("abort", abort, { once: true });
  return pipeline(body, limited, () => late.removeEventListener("abort", abort));
}

/** By this name the client knows what is worth another attempt. */
function timedOut(limitMs: Millis): Error {
  const error = new Error(`the answer has no end after ${limitMs / 1000} s`);
  error.name = "TimeoutError";
  return error;
}

/** A request to AWS, in the words of its fault. */
export interface AwsPurpose {
  /** Ends "Cannot …". */
  readonly action: string;
  /** What its right is called, and on what. */
  readonly permission: string;
  /** Who is to answer, and what is amiss where that one refuses. */
  readonly service: string;
  readonly wanted: string;
  /** By which names that one says that what an action names does not exist. */
  readonly unknown?: RegExp;
}

interface Explanation {
  readonly code: ErrorCode;
  readonly retryable?: boolean;
  readonly wanted: string;
}

interface KnownRefusal extends Explanation {
  readonly name: RegExp;
  /** Of the message, where one name has many meanings. */
  readonly told?: RegExp;
}

/**
 * What AWS calls a release that it does not take. Sources: the error types of AWS' clients; the
 * messages as users of Auto Scaling quote them, since it has the one name ValidationError for most.
 */
const refusals: readonly KnownRefusal[] = [
  {
    name: /^ScalingActivityInProgress|^ResourceContention/,
    code: "CLOUD_REFUSED",
    retryable: true,
    wanted: "no other activity of the group under way; retrying",
  },
  {
    name: /^ValidationError$/,
    told: /min size/i,
    code: "CLOUD_REFUSED",
    wanted:
      "a desired capacity above the group's minimum, or that it is kept (instance.release: Recreate, detach without decrementDesiredCapacity)",
  },
  {
    name: /^ValidationError$/,
    // It has left the group, or is leaving it: another look tells.
    told: /not found|not in InService|not part of/i,
    code: "CLOUD_REFUSED",
    retryable: true,
    wanted: "a member of the group",
  },
  {
    name: /^IncorrectInstanceState$|^IncorrectState$/,
    code: "CLOUD_REFUSED",
    retryable: true,
    wanted: "no other operation on the instance; retrying",
  },
  {
    // Who may use an encrypted queue or topic may not use its key with that.
    name: /^KMSAccessDenied/i,
    code: "CLOUD_RIGHT_MISSING",
    wanted: "the permissions kms:Decrypt and kms:GenerateDataKey on the key that encrypts it",
  },
  {
    name: /^OperationNotPermitted$/,
    told: /terminat/i,
    code: "CLOUD_REFUSED",
    wanted: "an instance without termination protection",
  },
];

/** What of an error of AWS' client is read; it may be anything. */
interface ForeignError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
  readonly $response?: { readonly headers?: Readonly<Record<string, unknown>> };
}

/**
 * Codes by which AWS says that it does not know who asks, and what its client says before it asks.
 */
const strangerNames = new Set([
  "CredentialsProviderError",
  "ExpiredToken",
  "ExpiredTokenException",
  "InvalidClientTokenId",
  "InvalidSecurity",
  "MissingAuthenticationToken",
  "SignatureDoesNotMatch",
  "TokenProviderError",
  "UnrecognizedClientException",
]);

/** All that AWS' client says, before it asks, where nobody has told it. */
const regionless = "Region is missing";

/** What became of a request that failed, as one of our faults. */
export function faultOfAws(error: unknown, asked: AwsPurpose): LastcallError {
  const { name, message, $metadata, $response } = (error ?? {}) as ForeignError;
  const status = Number($metadata?.httpStatusCode ?? 0);
  const named = typeof name === "string" ? name : "an error without a name";
  const told =
    typeof message === "string" ? message.replaceAll(/\s+/g, " ").slice(0, 200).toWellFormed() : "";
  if (told === regionless) {
    const problem = `Cannot ${asked.action}: found no region, expected AWS_REGION in the environment`;
    return new LastcallError("CONFIG_INVALID", problem, { cause: error });
  }
  const { code, retryable, wanted } = knownRefusal(named, told) ?? judge(named, status, asked);
  const found = `found ${named}${status === 0 ? "" : ` (status ${status})`}`;
  const quoted = told === "" ? "" : `, "${told.replace(/\.\s*$/, "")}"`;
  return new LastcallError(code, `Cannot ${asked.action}: ${found}${quoted}, expected ${wanted}`, {
    cause: error,
    retryAfterMs: askedPauseMs($response?.headers?.["retry-after"]),
    ...(retryable === undefined ? {} : { retryable }),
  });
}

/** Lambda names one in seconds, and so may whatever stands before another service. */
function askedPauseMs(retryAfter: unknown): number | undefined {
  const text = typeof retryAfter === "string" ? retryAfter : "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

function knownRefusal(name: string, said: string): Explanation | undefined {
  return refusals.find((one) => one.name.test(name) && (one.told?.test(said) ?? true));
}

/** A defect of ours must not end a loop either: it is told as one. */
export function asFault(error: unknown): LastcallError {
  return isLastcallError(error) ? error : new LastcallError("BROKEN_INVARIANT", messageOf(error));
}

function judge(name: string, status: number, asked: AwsPurpose): Explanation {
  if (/throttl|TooManyRequests|RequestLimit|OverLimit/i.test(name) || status === 429) {
    return { code: "CLOUD_RATE_LIMITED", wanted: "fewer requests" };
  }
  if (strangerNames.has(name) || status === 401) {
    return { code: "CLOUD_CREDENTIALS", wanted: "credentials that AWS accepts" };
  }
  if (/AccessDenied/i.test(name) || status === 403) {
    return { code: "CLOUD_RIGHT_MISSING", wanted: `the permission ${asked.permission}` };
  }
  if (asked.unknown?.test(name)) return { code: "ACTION_TARGET_UNKNOWN", wanted: asked.wanted };
  if (status >= 400 && status < 500) {
    return { code: "CLOUD_REFUSED", wanted: asked.wanted };
  }
  return { code: "CLOUD_UNREACHABLE", wanted: `an answer of ${asked.service}` };
}
