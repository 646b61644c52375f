import type { KeyPair, RouteAnswer, Routes } from "../../contracts/http-route.ts";
import { LastcallError } from "../../errors.ts";

/** The health of a process. */
interface HealthAnswers {
  /** What is wrong, in a sentence; undefined if nothing is. */
  readonly problem: () => string | undefined;
  /** Why it is not ready, in a sentence; undefined if it is. */
  readonly whyNotReady: () => string | undefined;
}

/** The two paths that a kubelet probes. */
export function healthRoutes(health: HealthAnswers): Routes {
  return {
    "/healthz": () => answerOf(health.problem()),
    "/readyz": () => answerOf(health.whyNotReady()),
  };
}

function answerOf(problem: string | undefined): RouteAnswer {
  return problem === undefined
    ? { status: 200, text: "ok\n" }
    : { status: 503, text: `${problem}\n` };
}

/**
 * Reads the certificate of /metrics if the options name one; its code is loaded only then. Throws
 * USAGE if they name only half of it.
 */
export function metricsKeyPair(options: {
  readonly metricsCertFile: string | undefined;
  readonly metricsKeyFile: string | undefined;
}): (() => Promise<KeyPair>) | undefined {
  const { metricsCertFile: certFile, metricsKeyFile: keyFile } = options;
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile !== undefined && keyFile !== undefined) {
    return async () => {
      const { readKeyPair } = await import("../../runtime/key-pair-file.ts");
      return readKeyPair({ certFile, keyFile });
    };
  }
  const [given, missing] = certFile === undefined ? ["key", "cert"] : (["cert", "key"] as const);
  throw new LastcallError(
    "USAGE",
    `Cannot serve metrics over TLS: --metrics-${given}-file also needs --metrics-${missing}-file, set both`,
  );
}
