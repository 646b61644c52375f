import type { HttpAnswer, Routes } from "../contracts/http-route.ts";

/** What answers of a process' health. */
interface Health {
  /** What is wrong, in a sentence; undefined when nothing is. */
  readonly problem: () => string | undefined;
  readonly ready: () => boolean;
}

/** The two paths that a kubelet asks; `notReady` is the sentence of one that is not ready yet. */
export function healthRoutes(health: Health, notReady: string): Routes {
  return {
    "/healthz": () => answerOf(health.problem()),
    "/readyz": () => answerOf(health.ready() ? undefined : notReady),
  };
}

function answerOf(problem: string | undefined): HttpAnswer {
  return problem === undefined
    ? { status: 200, text: "ok\n" }
    : { status: 503, text: `${problem}\n` };
}
