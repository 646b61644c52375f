import type { Millis } from "../../core/time/time.ts";

const silentLog = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** How each of AWS' clients is set. `region` absent: as the client finds it in its environment. */
export function clientSettings({
  region,
  answerLimitMs,
  maxAttempts = 2,
  maxSockets,
}: {
  readonly region: string | undefined;
  readonly answerLimitMs: Millis;
  /** By the client itself; one where a request must not be sent twice without a look in between. */
  readonly maxAttempts?: number;
  /** How many requests are under way at the most; absent: 50, as the client has it. */
  readonly maxSockets?: number;
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
      ...(maxSockets === undefined
        ? {}
        : {
            httpAgent: { keepAlive: true, maxSockets },
            httpsAgent: { keepAlive: true, maxSockets },
          }),
    },
  };
}
