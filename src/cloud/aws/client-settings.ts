import type { Millis } from "../../core/time/time.ts";

const silentLog = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** How each of AWS' clients is set. `region` absent: as the client finds it in its environment. */
export function clientSettings({
  region,
  answerLimitMs,
}: {
  readonly region: string | undefined;
  readonly answerLimitMs: Millis;
}) {
  return {
    ...(region === undefined ? {} : { region }),
    // The caller tries again, and says so.
    maxAttempts: 2,
    logger: silentLog,
    requestHandler: {
      connectionTimeout: 3000,
      requestTimeout: answerLimitMs,
      throwOnRequestTimeout: true,
    },
  };
}
