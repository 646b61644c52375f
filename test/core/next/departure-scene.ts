import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import type { AskedRequest } from "../../../src/core/next/request.ts";
import type {
  DepartureScene,
  EvaluationTime,
  RequestFault,
  SceneFacts,
} from "../../../src/core/next/scene.ts";
import { departureAnnotation } from "../../../src/core/notice/interruption.ts";
import { type Instant, millis, minutes, plus } from "../../../src/core/time/time.ts";
import { startAt } from "../drain/drain-scene.ts";
import { aDeparture, aNode, aPolicy } from "../fleet-builder.ts";

/** Builders of scenes for `next`: one node that departs as planned, and what is known of it. */
export const policy = aPolicy({
  replacement: { when: "None", timeoutMs: minutes(1), onTimeout: "Proceed" },
});

export const theNode = aNode("n1");

export function at(ms: number): Instant {
  return plus(startAt, millis(ms));
}

export function timeAt(ms: number, number: number): EvaluationTime {
  return { at: at(ms), ms, number };
}

/** The node with our marks. */
export function marked(): NodeFacts {
  const annotations = { [departureAnnotation]: "n1-1" };
  return { ...theNode, annotations, unschedulable: true };
}

/** A status whose phases were entered in this order, a second after each other. */
export function statusIn(
  phases: readonly DepartureStatus["phase"][],
  more: Partial<DepartureStatus> = {},
): DepartureStatus {
  const timeline = phases.map((step, index) => ({ at: at(index * 1000), step, result: "" }));
  const phase = phases.at(-1) ?? "Scheduled";
  return { phase, startedAt: at(0), timeline, ...more };
}

type SceneOver = Omit<Partial<DepartureScene>, "departure"> & {
  readonly departure?: Parameters<typeof aDeparture>[1];
};

export function aScene({ departure, ...over }: SceneOver): DepartureScene {
  return {
    departure: aDeparture(theNode, { cause: "Planned", ...departure }),
    ...{ isDeleted: false, node: theNode, policy, facts: {}, drains: () => [] },
    ...{
      fleetHold: () => undefined,
      nodesOut: () => undefined,
      newestPolicy: () => over.policy ?? policy,
      actions: [],
    },
    ...{ terminations: new Map(), heardMs: 0, self: undefined },
    ...over,
  };
}

export function known<T>(value: T, number = 1) {
  return { kind: "Known" as const, value, number };
}

export function failed(fault: Partial<RequestFault> = {}, sinceMs = 0) {
  const refused = { code: "API_REFUSED", message: "403: no", retryable: false, ...fault };
  return { kind: "Failed" as const, fault: refused, sinceMs };
}

/** All that a voluntary departure reads before its cordon. */
export function checked(): SceneFacts {
  return {
    nodeNow: known({ node: theNode }),
    ...{ podsNow: known([]), budgets: known([]), unplaced: known([]) },
    releasable: known({ kind: "Possible" }),
  };
}

export function inFlight(kind: AskedRequest["kind"]): AskedRequest {
  return { kind, attempts: 1, sinceMs: 0, isInFlight: true };
}

export function unanswered(kind: AskedRequest["kind"], over: Partial<AskedRequest> = {}) {
  const fault = { code: "API_UNREACHABLE", message: "no response", retryable: true };
  const ended = { isInFlight: false, answeredMs: 0, answeredNumber: 1, againMs: 100 };
  return { ...inFlight(kind), ...ended, fault, ...over };
}

export function answered(kind: AskedRequest["kind"]): AskedRequest {
  return { ...inFlight(kind), isInFlight: false, answer: { kind: "Done" } };
}
