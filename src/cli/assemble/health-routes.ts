import type { RouteAnswer, Routes } from "../../contracts/http-route.ts";

/** What answers of a process' health. */
interface HealthAnswers {
  /** What is wrong, in a sentence; undefined when nothing is. */
  readonly problem: () => string | undefined;
  /** Why it is not ready, in a sentence; undefined when it is. */
  readonly whyNotReady: () => string | undefined;
}

/** The two paths that a kubelet asks. */
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
