import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { readBudgets } from "../../../src/core/limits/budget.ts";
import { windowHold } from "../../../src/core/limits/gate.ts";
import { type StartQuestion, startVerdict } from "../../../src/core/plan/start.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily, everyMachine } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

interface Question {
  readonly planned?: Partial<StartQuestion["planned"]> | undefined;
  readonly policy?: Partial<Policy>;
  readonly node?: Partial<NodeFacts>;
  readonly departure?: Partial<Omit<Departure, "status">>;
  readonly gateAnswer?: StartQuestion["gateAnswer"];
  /** Other departures. */
  readonly departures?: readonly Departure[];
}

/** The verdict on a departure that was planned for ten minutes ago and has its deadline now. */
function verdictAtDeadline({ departure, planned, departures = [], ...question }: Question): string {
  const policy = aPolicy(question.policy);
  const node = aNode("n1", question.node);
  const snapshot = { nodes: [node], policies: [policy], badPolicies: [] };
  const answers = { gateAnswers: {}, releaseAnswers: everyMachine };
  const verdict = startVerdict({
    departure: aDeparture(node, { departAt: plus(now, minutes(-10)), ...departure }),
    planned: {
      reason: "Spaced",
      deadlineAt: now,
      overridesBudgetAt: plus(now, minutes(30)),
      ...planned,
    },
    ...{
      node,
      policy,
      waves: undefined,
      gateAnswer: question.gateAnswer,
      releaseAnswer: { kind: "Possible" },
      now,
      window: windowHold(policy, now),
    },
    ledger: readBudgets({ ...snapshot, ...answers, departures }, now),
  });
  return verdict.kind === "NotAsked" ? verdict.kind : `${verdict.kind} ${verdict.reason}`;
}

const gates = { blockingPods: [], gangWorkloads: "Hold" } as const;
const quiet = { alerts: [], blockingPods: new Map(), gangs: new Map() };
const slice = { labels: { "cloud.google.com/gke-tpu-topology": "4x4" } };

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
    [
      "workloads on several nodes that could not be listed",
      { policy: { gates }, gateAnswer: { ...quiet, gangs: "Unknown" } },
      "Allowed DeadlineForces",
    ],
  ])("overrides %s", (_, question, expected) => {
    expect(verdictAtDeadline(question)).toBe(expected);
  });

  it.each<[string, Question, string]>([
    ["a paused policy", { policy: { paused: true } }, "Held PolicyPaused"],
    ["a user's hold", { departure: { hold: true } }, "Held HeldByPerson"],
    [
      "an indefinite hold",
      { node: { annotations: { "lastcall.dev/hold": "true" } } },
      "Held OnHold",
    ],
    [
      "other tools that drain the node",
      { node: { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] } },
      "Held LeftToOthers",
    ],
    ["the deletion of the node", { node: { deletionAt: now } }, "Held NodeTerminating"],
    [
      "a workload on several nodes",
      { policy: { gates }, gateAnswer: { ...quiet, gangs: new Map([["n1", "JobSet a/b"]]) } },
      "Held GangWorkload",
    ],
    [
      "a host of a slice",
      { policy: { gates }, node: slice, gateAnswer: quiet },
      "Held GangWorkload",
    ],
    [
      "workloads on several nodes that were not looked for",
      { policy: { gates } },
      "Held GangsUnknown",
    ],
    [
      "a node that was not asked about",
      { policy: { gates }, gateAnswer: { ...quiet, gangs: new Map([["n2", undefined]]) } },
      "Held GangsUnknown",
    ],
  ])("does not override %s", (_, question, expected) => {
    expect(verdictAtDeadline(question)).toBe(expected);
  });

  it("forces nothing a millisecond early", () => {
    const planned = { deadlineAt: at("2026-11-20T12:00:00.001Z") };
    const policy = { windows: [daily("01:00-02:00")] };
    expect(verdictAtDeadline({ policy, planned })).toBe("Held OutsideWindow");
  });
});

describe("a used-up budget", () => {
  const budgets = [{ kind: "PerHour", perHour: 1 }] as const;
  const anHourLess = plus(now, minutes(-59));
  const lately = aDeparture(aNode("n0"), { status: { phase: "Ended", startedAt: anHourLess } });
  const verdict = (planned: Question["planned"]) =>
    verdictAtDeadline({ policy: { budgets }, planned, departures: [lately] });

  it.each<[string, Question["planned"], string]>([
    ["holds a departure past its deadline, into the reserve", {}, "Held BudgetSpent"],
    [
      "lets it start at the end of its lifetime",
      { overridesBudgetAt: now },
      "Allowed DeadlineForces",
    ],
    [
      "holds one that missed its time for as long",
      { reason: "Missed", deadlineAt: plus(now, minutes(-9)) },
      "Held BudgetSpent",
    ],
    [
      "holds a node that was overdue from the start indefinitely",
      { reason: "Overdue", overridesBudgetAt: plus(now, minutes(-9)) },
      "Held BudgetSpent",
    ],
  ])("%s", (_, planned, expected) => {
    expect(verdict(planned)).toBe(expected);
  });

  it("holds a departure even if the deadline overrides a gate", () => {
    const gates = { freezeUntil: plus(now, minutes(1)), blockingPods: [] };
    const policy = { budgets, gates };
    expect(verdictAtDeadline({ policy, departures: [lately] })).toBe("Held BudgetSpent");
  });
});
