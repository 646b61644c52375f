import http from "node:http";
import https from "node:https";
import { PassThrough, pipeline, type Readable } from "node:stream";
import type { Millis } from "../../core/time/time.ts";

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
