import http from "node:http";
import https from "node:https";
import { PassThrough, pipeline, type Readable } from "node:stream";
import type { defaultProvider } from "@aws-sdk/credential-provider-node";
import { untilAborted } from "../../contracts/time-limit.ts";
import { fieldsOf, textOf } from "../../core/json/json-field.ts";
import { type Instant, type Millis, parseHttpDate, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { FaultMeaning } from "../release/rest-exchange.ts";

/** The most concurrent requests of a client, which is the client's own default. */
const maxSockets = 50;

const silentLog = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * The settings of every AWS client. If `region` is undefined, the client takes it from its
 * environment.
 */
export function clientSettings({
  region,
  answerLimitMs,
  maxAttempts = 2,
}: {
  readonly region: string | undefined;
  /** The limit for the response to start, and again for its body to end. */
  readonly answerLimitMs: Millis;
  /**
   * The client's own attempts; 1 if a request must not be repeated without checking the state
   * first.
   */
  readonly maxAttempts?: number;
}) {
  return {
    ...(region === undefined ? {} : { region }),
    // The caller retries, and logs it.
    maxAttempts,
    logger: silentLog,
    credentials: boundedCredentials(),
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

type Credentials = ReturnType<typeof defaultProvider>;

/** The sources' own attempts end within four seconds, unless a response never arrives. */
const credentialLimitMs: Millis = seconds(5);

/**
 * The client's own chain of sources, with a limit: its request to a container's source of
 * credentials, as in EKS Pod Identity, has none, and all later calls would wait for one that is
 * lost. A chain that has failed is therefore replaced; one that has not renews what it has found
 * before that expires.
 */
function boundedCredentials(): Credentials {
  let chain: Promise<Credentials> | undefined;
  return async (asked) => {
    chain ??= newChain();
    const used = chain;
    const found = used.then((credentials) => credentials(asked));
    const late = AbortSignal.timeout(credentialLimitMs);
    try {
      return await untilAborted(found, late);
    } catch (error) {
      if (chain === used) chain = undefined;
      if (!late.aborted) throw error;
      // A source may just be slow, such as a process that asks for a code.
      const keep = () => {
        chain = used;
      };
      found.then(keep, () => undefined);
      throw noCredentials();
    }
  };
}

async function newChain(): Promise<Credentials> {
  const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
  return defaultProvider({ logger: silentLog });
}

/** Is told of faults that work went on in spite of. */
export type TroubleListener = (error: LastcallError) => void;

/** The message that tells it from a service that has not responded. */
const credentialsLate = `no credentials within ${credentialLimitMs / 1000} s`;

function noCredentials(): Error {
  const error = new Error(credentialsLate);
  error.name = "TimeoutError";
  return error;
}

/**
 * Node's global agents honor the environment's proxies if NODE_USE_ENV_PROXY is set. The agents
 * that a client creates would bypass them.
 */
function proxyOf(agent: http.Agent) {
  const { proxyEnv } = (agent as { readonly options?: http.AgentOptions }).options ?? {};
  return proxyEnv === undefined ? {} : { proxyEnv };
}

/** More than any page of the AWS APIs. Longer bodies are not read. */
const mostBytes = 32 * 1024 * 1024;

/** The part of the client's request handler that is changed. */
interface Handler {
  handle(...asked: readonly unknown[]): Promise<{ response: { body?: unknown } }>;
}

interface HandlerSettings {
  httpHandler(): object;
  setHttpHandler(handler: never): void;
}

/**
 * The client's own timeouts end with the response's headers. A body that stalls or never ends would
 * be awaited, and kept in memory, forever, and would block every reader that runs one request at a
 * time.
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

/** What a command of an AWS client offers to see its response. */
interface WatchedCommand {
  readonly middlewareStack: {
    add(
      middleware: (next: (...asked: never[]) => unknown) => (...asked: never[]) => unknown,
      options: { readonly step: "deserialize"; readonly name: string },
    ): void;
  };
}

/** Watches for AWS's own time of a command's last response, which the client does not return. */
export function watchTime(command: WatchedCommand): () => Instant | undefined {
  let date: unknown;
  const middleware =
    (next: (...asked: never[]) => unknown) =>
    async (...asked: never[]) => {
      const result = await next(...asked);
      const { response } = result as { readonly response?: unknown };
      date = fieldsOf(fieldsOf(response).headers).date;
      return result;
    };
  command.middlewareStack.add(middleware, { step: "deserialize", name: "watchTime" });
  return () => parseHttpDate(textOf(date) ?? "");
}

/** Most bodies are complete once their headers have been read. */
function isOpen(body: unknown): body is Readable {
  const { complete } = (body ?? {}) as { readonly complete?: unknown };
  return complete === false;
}

function bounded(body: Readable, limitMs: Millis): Readable {
  let bytes = 0;
  const limited = new PassThrough({
    transform(part: Buffer, _, done) {
      bytes += part.byteLength;
      if (bytes > mostBytes) done(new Error(`the response is over ${mostBytes / 1024 / 1024} MiB`));
      else done(null, part);
    },
  });
  const late = AbortSignal.timeout(limitMs);
  const abort = () => limited.destroy(timedOut(limitMs));
  late.addEventListener("abort", abort, { once: true });
  return pipeline(body, limited, () => late.removeEventListener("abort", abort));
}

/** The client retries errors of this name. */
function timedOut(limitMs: Millis): Error {
  const error = new Error(`the response is incomplete after ${limitMs / 1000} s`);
  error.name = "TimeoutError";
  return error;
}

/**
 * The list of a response. AWS sends one even if it is empty: a response without it is something
 * else's, and says nothing about what exists. Throws a TypeError for `faultOfAws`.
 */
export function listIn<T>(list: readonly T[] | undefined): readonly T[] {
  if (list === undefined) throw new TypeError("the response contains no list");
  return list;
}

/**
 * The token of the page after that of `token`; undefined if there is none. Throws a TypeError for
 * `faultOfAws` if it is the same: that page would be read again and again.
 */
export function tokenAfter(token: string | undefined, next: string | undefined) {
  if (next && next === token) throw new TypeError("the response names the page that it is");
  return next || undefined;
}

/** The purpose of an AWS request, for its error message. */
export interface AwsPurpose {
  /** Completes "Cannot …". */
  readonly action: string;
  /** The name of the permission, and its resource. */
  readonly permission: string;
  /** The service, and what it expects if it refuses. */
  readonly service: string;
  readonly wanted: string;
  /** Error names that mean that the target of an action does not exist. */
  readonly unknown?: RegExp;
}

interface KnownRefusal extends FaultMeaning {
  readonly name: RegExp;
  /** Matches the message, for error names with several meanings. */
  readonly told?: RegExp;
}

/**
 * AWS errors for a release that is refused. Sources: the error types of the AWS clients; messages
 * quoted by users of Auto Scaling, which uses the name ValidationError for most of them.
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
      "a desired capacity above the group's minimum, or a release that keeps it (instance.release: Recreate, detach without decrementDesiredCapacity)",
  },
  {
    name: /^ValidationError$/,
    // The instance has left the group, or is leaving it: the next lookup shows which.
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
    // Access to an encrypted queue or topic does not include access to its key.
    name: /^KMSAccessDenied/i,
    code: "CLOUD_RIGHT_MISSING",
    wanted: "the permissions kms:Decrypt and kms:GenerateDataKey on the key that encrypts it",
  },
  {
    name: /^TimeoutError$/,
    told: new RegExp(`^${credentialsLate}$`),
    code: "CLOUD_UNREACHABLE",
    wanted: "a response from the source of the credentials",
  },
  {
    name: /^OperationNotPermitted$/,
    told: /terminat/i,
    code: "CLOUD_REFUSED",
    wanted: "an instance without termination protection",
  },
];

/** The parts of an AWS client's error that are read; their types are not guaranteed. */
interface ForeignError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
  readonly $response?: { readonly headers?: Readonly<Record<string, unknown>> };
}

/** Names of errors with which AWS rejects the caller's credentials, or the client finds none. */
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

/** The client's whole message if no region is configured. */
const regionless = "Region is missing";

/** Converts the error of an AWS request to a `LastcallError`. */
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

/** Lambda sends `Retry-After` in seconds, and so may a proxy in front of another service. */
function askedPauseMs(retryAfter: unknown): number | undefined {
  const text = typeof retryAfter === "string" ? retryAfter : "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

function knownRefusal(name: string, said: string): FaultMeaning | undefined {
  return refusals.find((one) => one.name.test(name) && (one.told?.test(said) ?? true));
}

/** A bug in Lastcall must not end a loop either; it is reported as BROKEN_INVARIANT. */
export function asFault(error: unknown): LastcallError {
  return isLastcallError(error) ? error : new LastcallError("BROKEN_INVARIANT", messageOf(error));
}

function judge(name: string, status: number, asked: AwsPurpose): FaultMeaning {
  if (/throttl|TooManyRequests|RequestLimit|OverLimit/i.test(name) || status === 429) {
    return { code: "CLOUD_RATE_LIMITED", wanted: "a lower request rate" };
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
  return { code: "CLOUD_UNREACHABLE", wanted: `a response from ${asked.service}` };
}
