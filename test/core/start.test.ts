import { describe, expect, it } from "vitest";
import { readBudgets } from "../../src/core/budget.ts";
import type { Departure } from "../../src/core/departure.ts";
import type { NodeFacts } from "../../src/core/node.ts";
import type { Policy } from "../../src/core/policy.ts";
import { startVerdict } from "../../src/core/start.ts";
import { minutes, plus } from "../../src/core/time.ts";
import { aDeparture, aNode, aPolicy, at, daily } from "./fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

interface Question {
  readonly policy?: Partial<Policy>;
  readonly node?: Partial<NodeFacts>;
  readonly departure?: Partial<Omit<Departure, "status">>;
}

/** The verdict on a departure that was planned for ten minutes ago and has its deadline now. */
function verdictAtDeadline({ policy: more, node: over, departure }: Question): string {
  const policy = aPolicy(more);
  const node = aNode("n1", over);
  const snapshot = { nodes: [node], policies: [policy], badPolicies: [], gateAnswers: {} };
  const verdict = startVerdict({
    departure: aDeparture(node, {
      ...{ departAt: plus(now, minutes(-10)), deadlineAt: now },
      ...departure,
    }),
    ...{ node, policy, waves: undefined, gateAnswer: undefined, now },
    ledger: readBudgets({ ...snapshot, departures: [] }, now),
  });
  return `${verdict.kind} ${verdict.reason}`;
}

describe("the deadline of a departure", () => {
  it.each<[string, Question, string]>([
    ["nothing", {}, "Allowed Spaced"],
    [
      "a freeze",
      { policy: { gates: { freezeUntil: plus(now, minutes(1)), blockingPods: [] } } },
      "Allowed DeadlineForces",
    ],
    ["a closed window", { policy: { windows: [daily("01:00-02:00")] } }, "Allowed DeadlineForces"],
    [
      "a hold with an end",
      { node: { annotations: { "lastcall.dev/hold": "2026-11-20T13:00:00Z" } } },
      "Allowed DeadlineForces",
    ],
    ["a cordon of others", { node: { unschedulable: true } }, "Allowed DeadlineForces"],
  ])("goes past %s", (_, question, expected) => {
    expect(verdictAtDeadline(question)).toBe(expected);
  });

  it.each<[string, Question, string]>([
    ["a paused policy", { policy: { paused: true } }, "Held PolicyPaused"],
    ["a person's hold", { departure: { hold: true } }, "Held HeldByPerson"],
    ["a hold for good", { node: { annotations: { "lastcall.dev/hold": "true" } } }, "Held OnHold"],
    [
      "others who take the node",
      { node: { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] } },
      "Held LeftToOthers",
    ],
    ["the node's own end", { node: { deletionAt: now } }, "Held NodeTerminating"],
  ])("does not go past %s", (_, question, expected) => {
    expect(verdictAtDeadline(question)).toBe(expected);
  });

  it("forces nothing a millisecond before", () => {
    const departure = { deadlineAt: at("2026-11-20T12:00:00.001Z") };
    const policy = { windows: [daily("01:00-02:00")] };
    expect(verdictAtDeadline({ policy, departure })).toBe("Held OutsideWindow");
  });
});
