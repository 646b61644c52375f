import { describe, expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import type { EvictionAnswer } from "../../../src/core/drain/drain-answer.ts";
import type { DrainAct } from "../../../src/core/drain/drain-progress.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import {
  hours,
  type Instant,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { type DrainRun, type ModelPod, runDrain } from "./drain-model.ts";
import { budget, node, pod, rule, startAt } from "./drain-scene.ts";

function model(name: string, exitMs: Millis, facts: Partial<PodFacts> = {}): ModelPod {
  return { facts: pod(name, facts), exitMs };
}

function drained(pods: readonly ModelPod[], changes: Partial<DrainRun> = {}) {
  return runDrain({ pods, rule: rule(), ...changes });
}

function waiting(timeoutMs?: Millis): DrainRule {
  const selector = { matchLabels: { app: "web" } };
  return rule({ podRules: [{ selector, action: "WaitCompleted", timeoutMs }] });
}

it.each([
  ["RollBack", "Done", 400],
  ["Proceed", "Proceeded", 300],
] as const)(
  "planned, %s: a pod whose grace is longer than the timeout ends the drain with %s",
  (onTimeout, verdict, at) => {
    const slow = model("slow", seconds(400), { graceSeconds: 600 });
    const { end, endedMs } = drained([slow], { rule: rule({ onTimeout }) });
    expect([end.verdict, endedMs]).toEqual([verdict, at * 1000]);
  },
);

it("planned: a pod with a long grace gives no more time to one that its budget blocks", () => {
  const slow = model("slow", seconds(400), { graceSeconds: 600, labels: { app: "slow" } });
  const { end, endedMs } = drained([slow, model("held", seconds(1))], {
    budgets: [{ facts: budget("web", { disruptionsAllowed: 0, currentHealthy: 2 }) }],
  });
  expect([end.verdict, endedMs]).toEqual(["TimedOut", 300_000]);
});

describe("Proceed: a pod that nobody could ask to leave", () => {
  const proceed = rule({ onTimeout: "Proceed" });
  const held = model("held", seconds(1), { graceSeconds: 20 });
  const denied: EvictionAnswer = {
    kind: "Refused",
    status: 403,
    message: "denied by pods.example",
  };
  const failed: EvictionAnswer = { kind: "Failed", retryable: true, message: "no endpoints" };
  const budgets = [{ facts: budget("web", { disruptionsAllowed: 0, currentHealthy: 2 }) }];
  const deny = (kinds: readonly DrainAct["kind"][], answer: EvictionAnswer) => (act: DrainAct) =>
    kinds.includes(act.kind) ? answer : undefined;

  it.each<[string, Partial<DrainRun>]>([
    ["its eviction and its deletion are denied", { api: deny(["Evict", "Delete"], denied) }],
    ["a webhook on both is down", { api: deny(["Evict", "Delete"], failed) }],
    ["its budget holds it, and its deletion is denied", { budgets, api: deny(["Delete"], denied) }],
  ])("is not released with its machine: %s", (_, run) => {
    const { end, endedMs } = drained([held], { rule: proceed, ...run });
    expect([end.verdict, endedMs]).toEqual(["TimedOut", 300_000]);
    const [first] = end.blocked;
    expect(first?.message).toMatch(/denied by pods\.example|no endpoints/);
  });

  it("is asked on and on if the cloud takes the machine whatever happens", () => {
    const untilMs = minutes(40);
    const refuse = deny(["Evict", "Delete"], denied);
    const api = (act: DrainAct, afterMs: number) => (afterMs < untilMs ? refuse(act) : undefined);
    const { end, endedMs } = drained([held], { rule: proceed, isTaken: true, api });
    expect(end.verdict).toBe("Done");
    expect(endedMs).toBeGreaterThanOrEqual(untilMs);
    expect(endedMs).toBeLessThan(untilMs + 30_000);
  });
});

it.each([310, 560])(
  "Proceed: a pod that is deleted past the timeout, after %d s, gets its grace all the same",
  (afterSeconds) => {
    const busy: EvictionAnswer = { kind: "Overloaded", message: "too many requests" };
    const { sent, end, endedMs } = drained([model("held", seconds(19), { graceSeconds: 20 })], {
      rule: rule({ onTimeout: "Proceed" }),
      budgets: [{ facts: budget("web", { disruptionsAllowed: 0, currentHealthy: 2 }) }],
      api: (_, afterMs) => (afterMs < afterSeconds * 1000 ? busy : undefined),
    });
    const deleted = sent.findLast(({ act }) => act.kind === "Delete");
    expect(deleted).toMatchObject({ answer: "Accepted", act: { graceSeconds: 20 } });
    expect([end.verdict, endedMs]).toEqual(["Done", (deleted?.afterMs ?? 0) + 19_000]);
  },
);

it.each(["Evict", "Delete"] as const)(
  "Proceed: a pod that a rule makes leave by %s gets all its grace, as in any planned drain",
  (action) => {
    const podRules = [{ selector: { matchLabels: { app: "web" } }, action }];
    const { sent } = drained([model("slow", seconds(1), { graceSeconds: 600 })], {
      rule: rule({ onTimeout: "Proceed", podRules }),
    });
    const asked = sent.map(({ act }) => [act.kind, "graceSeconds" in act && act.graceSeconds]);
    expect(asked).toEqual([[action, action === "Evict" ? undefined : 600]]);
  },
);

it("a job gets no more time if another controller takes over the drain", () => {
  const restarted = { rule: waiting(hours(1)), restartAfterMs: minutes(40) };
  expect(drained([model("job", seconds(1))], restarted).timeline).toEqual([
    "3600 job: Evict Accepted",
    "3601 job: gone",
    "3601 Done",
  ]);
});

it.each([
  ["another controller takes over", minutes(45)],
  ["no other controller takes over", undefined],
])("the wait for a job that has completed still extends the timeout if %s", (_, restartAfterMs) => {
  const selector = { matchLabels: { app: "job" } };
  const podRules = [{ selector, action: "WaitCompleted", timeoutMs: hours(1) } as const];
  const job = { ...model("job", seconds(1), { labels: selector.matchLabels }) };
  const { end, endedMs } = drained(
    [{ ...job, completesAfterMs: minutes(40) }, model("held", seconds(1))],
    {
      budgets: [{ facts: budget("web", { disruptionsAllowed: 0, currentHealthy: 2 }) }],
      ...{ rule: rule({ podRules }), restartAfterMs },
    },
  );
  expect([end.verdict, endedMs]).toEqual(["TimedOut", minutes(65)]);
});

it.each<[string, Millis | undefined, number]>([
  ["in a planned drain", undefined, 60],
  ["under a notice", minutes(20), 60],
  ["under a notice that leaves no time for the whole wait", seconds(72), 40],
])("the wait for a job of a higher tier counts from the start of the drain: %s", (...about) => {
  const [, notice, asked] = about;
  const selector = { matchLabels: { app: "job" } };
  const podRules = [{ selector, action: "WaitCompleted", timeoutMs: minutes(1) } as const];
  const job = model("job", seconds(1), { labels: selector.matchLabels, priority: 2_000_000_000 });
  const { timeline } = drained([model("web", seconds(5), { graceSeconds: 300 }), job], {
    ...{ rule: rule({ podRules }), notice },
  });
  expect(timeline[2]).toBe(`${asked} job: Evict Accepted`);
});

it("a new plan counts the wait for a job from the start of the drain", () => {
  const startOf = (startedAt: Instant, timeoutMs?: Millis) =>
    planDrain({
      ...{ node: node(), pods: [pod("a", { startedAt })], budgets: [], now: startAt },
      rule: waiting(timeoutMs),
      waitsSince: plus(startAt, minutes(-4)),
    }).pods[0]?.startMs;
  const before = plus(startAt, hours(-1));
  expect(startOf(before, minutes(10))).toBe(minutes(6));
  expect(startOf(before, minutes(3))).toBe(0);
  // Without a timeout of its own: until the drain's timeout of five minutes.
  expect(startOf(before)).toBe(minutes(1));
  // A pod that arrived later may run as long as the others could.
  expect(startOf(plus(startAt, minutes(-1)), minutes(10))).toBe(minutes(9));
  // By a clock that is ahead of the controller's.
  expect(startOf(plus(startAt, minutes(1)), minutes(10))).toBe(minutes(10));
});
