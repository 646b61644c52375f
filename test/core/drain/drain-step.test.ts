import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import type { DrainProgress } from "../../../src/core/drain/drain-progress.ts";
import { nextDrainActs } from "../../../src/core/drain/drain-step.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import {
  hours,
  instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { type DrainRun, type ModelPod, runDrain } from "./drain-model.ts";
import { budget, node, pod, rule, startAt } from "./drain-scene.ts";

const shop = { labels: { app: "shop" } };
const spent = { disruptionsAllowed: 0, currentHealthy: 2 };
const annotated = (key: string, value: string) => ({ annotations: { [key]: value } });

function model(name: string, exitMs: Millis | undefined, facts: Partial<PodFacts> = {}): ModelPod {
  return { facts: pod(name, facts), exitMs };
}

function dns(exitMs: Millis): ModelPod {
  return model("dns", exitMs, { labels: { "k8s-app": "kube-dns" }, priority: 2_000_000_000 });
}

function drained(pods: readonly ModelPod[], changes: Partial<DrainRun> = {}) {
  return runDrain({ pods, rule: rule(), ...changes });
}

function outcomes(progress: DrainProgress): Record<string, string> {
  return Object.fromEntries(
    Object.values(progress).map((p) => [p.pod.name, p.kind === "Gone" ? p.how : p.kind]),
  );
}

it("planned: DNS is evicted after the last workload is gone", () => {
  const { timeline, end } = drained([
    model("web", seconds(5)),
    model("slow", seconds(25)),
    dns(seconds(2)),
  ]);
  expect(timeline).toEqual([
    "0 slow: Evict Accepted",
    "0 web: Evict Accepted",
    "5 web: gone",
    "25 slow: gone",
    "25 dns: Evict Accepted",
    "27 dns: gone",
    "27 Done",
  ]);
  expect(end.counts).toEqual({
    total: 3,
    left: 0,
    evicted: 3,
    forced: 0,
    waiting: 0,
    blocked: 0,
    cut: 0,
    cleanExit: 3,
    killed: 0,
    leftBehind: 0,
    notClean: [],
    forcedPods: [],
  });
});

it("a pod that ignores SIGTERM is killed at the end of its grace, the others exit cleanly", () => {
  const { end, endedMs } = drained([model("web", seconds(5)), model("deaf", undefined)]);
  expect(endedMs).toBe(30_000);
  expect(outcomes(end.progress)).toEqual({ web: "CleanExit", deaf: "Killed" });
});

it("a pod that was stuck before the drain is left alone, and recorded as left behind", () => {
  const { end, sent, endedMs } = drained([
    model("web", seconds(5)),
    model("stuck", undefined, { deletionAt: minus(startAt, seconds(61)) }),
  ]);
  expect([end.verdict, endedMs]).toEqual(["Done", 5000]);
  expect(sent.map(({ act }) => act.pod.name)).toEqual(["web"]);
  expect(end.counts).toMatchObject({ total: 2, left: 1, cleanExit: 1, leftBehind: 1 });
  expect(end.counts.notClean).toMatchObject([{ name: "stuck", outcome: "LeftBehind" }]);
});

it("one blocked pod delays no other of its tier", () => {
  const { sent } = drained([model("held", seconds(1)), model("free", seconds(1), shop)], {
    budgets: [{ facts: budget("web", spent) }],
  });
  expect(sent[0]).toMatchObject({ afterMs: 0, act: { pod: { name: "free" } }, answer: "Accepted" });
  expect(sent[1]).toMatchObject({ afterMs: 0, act: { pod: { name: "held" } }, answer: "Blocked" });
});

it("planned: pods of one budget leave one by one as their replacements become ready", () => {
  const pods = ["a", "b", "c"].map((name) => model(name, seconds(1)));
  const { sent, end } = drained(pods, {
    budgets: [{ facts: budget("web"), recoversMs: seconds(20) }],
  });
  const accepted = sent.filter((one) => one.answer === "Accepted").map((one) => one.afterMs);
  expect(accepted[0]).toBe(0);
  // After 20 s and 40 s, within the longest pause of 10 s.
  expect(accepted[1]).toBeGreaterThanOrEqual(20_000);
  expect(accepted[1]).toBeLessThanOrEqual(30_000);
  expect(accepted[2]).toBeGreaterThanOrEqual(40_000);
  expect(end.verdict).toBe("Done");
  expect(end.counts).toMatchObject({ evicted: 3, forced: 0 });
});

it("planned: a budget that never allows an eviction leads to a timeout, not a deletion", () => {
  const { end, endedMs, sent } = drained([model("held", seconds(1)), dns(seconds(1))], {
    budgets: [{ facts: budget("web", spent) }],
  });
  expect([end.verdict, endedMs]).toEqual(["TimedOut", 300_000]);
  expect(sent.every((one) => one.act.kind === "Evict" && one.act.pod.name === "held")).toBe(true);
  expect(outcomes(end.progress)).toEqual({ held: "LeftBehind", dns: "LeftBehind" });
});

it("planned, Proceed: a held pod is deleted with all its grace just before the timeout", () => {
  const { sent, end } = drained([model("held", seconds(10), { graceSeconds: 60 })], {
    budgets: [{ facts: budget("web", spent) }],
    rule: rule({ onTimeout: "Proceed" }),
  });
  // 300 s, less 60 s of grace, less the margin of 2 s.
  expect(sent.at(-1)).toMatchObject({
    afterMs: 238_000,
    act: { kind: "Delete", graceSeconds: 60, reason: "ForcedAtTimeout" },
  });
  expect(end.counts).toMatchObject({ forced: 1, evicted: 0, cut: 0 });
});

it("planned, Proceed: a long grace still leaves the budget half of the time", () => {
  const { sent } = drained([model("held", seconds(10), { graceSeconds: 3600 })], {
    budgets: [{ facts: budget("web", spent) }],
    rule: rule({ onTimeout: "Proceed" }),
  });
  expect(sent.find((one) => one.act.kind === "Delete")?.afterMs).toBe(150_000);
});

it("planned, Wait: after the timeout the eviction is retried until it is allowed", () => {
  const { end, endedMs } = drained([model("held", seconds(1))], {
    rule: rule({ onTimeout: "Wait" }),
    api: (_, afterMs) =>
      afterMs < 3_600_000 ? { kind: "Blocked", message: "spent", stale: false } : undefined,
  });
  expect([end.verdict, end.counts.evicted]).toEqual(["Done", 1]);
  // An hour, at most the longest pause, and the second that the pod takes.
  expect(endedMs).toBeGreaterThan(3_600_000);
  expect(endedMs).toBeLessThanOrEqual(3_611_000);
});

it("under a notice a held pod is deleted at deadline - grace - margin, and counted as forced", () => {
  const { sent, end, timeline } = drained([model("held", seconds(10), { graceSeconds: 60 })], {
    budgets: [{ facts: budget("web", spent) }],
    notice: seconds(120),
  });
  expect(sent.slice(0, -1).every((one) => one.act.kind === "Evict")).toBe(true);
  expect(sent.at(-1)).toMatchObject({
    afterMs: 58_000,
    act: { kind: "Delete", graceSeconds: 60, reason: "ForcedAtDeadline" },
  });
  expect(timeline.slice(-2)).toEqual(["68 held: gone", "68 Done"]);
  expect(end.counts).toMatchObject({ forced: 1, left: 0, cut: 0 });
});

it("a 30 s notice: all pods are evicted at once, and a budget is respected for half of it", () => {
  const pods = [
    model("held", seconds(3), { graceSeconds: 60 }),
    model("free", seconds(3), { ...shop, graceSeconds: 60, controller: undefined }),
  ];
  const { sent, end } = drained(pods, {
    budgets: [{ facts: budget("web", spent) }],
    notice: seconds(30),
  });
  expect(sent.slice(0, 2).map((one) => [one.afterMs, one.act.kind, one.act.pod.name])).toEqual([
    [0, "Evict", "free"],
    [0, "Evict", "held"],
  ]);
  expect(sent[0]?.act).toMatchObject({ graceSeconds: 30 });
  expect(sent.slice(2, -1).every((one) => one.act.kind === "Evict")).toBe(true);
  expect(sent.at(-1)).toMatchObject({ afterMs: 13_000, act: { kind: "Delete", graceSeconds: 17 } });
  expect(end.counts).toMatchObject({ cut: 2, evicted: 1, forced: 1, left: 0 });
});

it("under a notice DNS leaves after the workloads, or as late as its own grace allows", () => {
  const early = drained([model("web", seconds(3)), dns(seconds(1))], { notice: seconds(120) });
  expect(early.timeline).toContain("3 dns: Evict Accepted");
  const late = drained([model("web", undefined, { graceSeconds: 60 }), dns(seconds(1))], {
    notice: seconds(60),
  });
  // 60 s, less its own 30 s, less the margin of 2 s.
  expect(late.timeline).toContain("28 dns: Evict Accepted");
});

it("a pod whose eviction failed until the deadline is left behind", () => {
  const hung = drained([model("a", undefined)], {
    notice: seconds(30),
    api: () => ({ kind: "Failed", retryable: true, message: "500" }),
  });
  expect([hung.end.verdict, hung.endedMs]).toEqual(["DeadlineReached", 30_000]);
  expect(outcomes(hung.end.progress)).toEqual({ a: "LeftBehind" });
  expect(hung.end.counts.left).toBe(1);
});

it("a notice during a planned drain overrides annotations, and held pods are deleted", () => {
  const pods = [
    model("held", seconds(1)),
    model("busy", undefined, { ...shop, ...annotated("lastcall.dev/do-not-disturb", "true") }),
    dns(seconds(1)),
  ];
  const { sent, end } = drained(pods, {
    budgets: [{ facts: budget("web", spent) }],
    lateNotice: { afterMs: seconds(100), leftMs: seconds(60) },
  });
  const of = (name: string) => sent.filter((one) => one.act.pod.name === name);
  expect(of("busy")).toMatchObject([{ afterMs: 100_000, answer: "Accepted" }]);
  expect(of("held").at(-1)).toMatchObject({
    afterMs: 128_000,
    act: { kind: "Delete", graceSeconds: 30 },
  });
  expect(of("dns")[0]?.afterMs).toBe(128_000);
  expect(end.counts).toMatchObject({ evicted: 2, forced: 1, left: 0 });
});

it("an annotated pod is left alone until it reaches the age, then evicted", () => {
  // It started an hour before the drain, so it is 61 minutes old after one minute.
  const busy = model("busy", seconds(1), annotated("lastcall.dev/do-not-disturb", "61m"));
  expect(drained([busy]).timeline).toEqual(["60 busy: Evict Accepted", "61 busy: gone", "61 Done"]);
});

it("a job may complete, but only for as long as its rule says", () => {
  const waits = rule({
    podRules: [
      { selector: { matchLabels: { app: "web" } }, action: "WaitCompleted", timeoutMs: hours(1) },
    ],
  });
  const done = { ...model("job", seconds(1)), completesAfterMs: minutes(20) };
  expect(drained([done], { rule: waits }).timeline).toEqual(["1200 job: gone", "1200 Done"]);
  expect(drained([model("job", seconds(1))], { rule: waits }).timeline).toEqual([
    "3600 job: Evict Accepted",
    "3601 job: gone",
    "3601 Done",
  ]);
});

it("a job that has succeeded but still exists does not hold up the drain", () => {
  const plan = planDrain({
    node: node(),
    pods: [pod("job")],
    budgets: [],
    rule: rule(),
    now: startAt,
  });
  const livePods = [pod("job", { phase: "Succeeded" })];
  const step = nextDrainActs({
    plan,
    startedAt: startAt,
    livePods,
    progress: {},
    rule: rule(),
    now: startAt,
  });
  expect([step.verdict, step.acts]).toEqual(["Done", []]);
});

it("a single replica that its budget protects is moved by one restart of its owner", () => {
  const alone = {
    ...spent,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
    minAvailable: 1,
  };
  const { timeline } = drained([model("only", seconds(1)), dns(seconds(1))], {
    budgets: [{ facts: budget("web", alone) }],
    rule: rule({ onSingleReplica: "RestartOwner" }),
  });
  expect(timeline).toEqual([
    "0 only: RestartOwner Accepted",
    "20 only: gone",
    "20 dns: Evict Accepted",
    "21 dns: gone",
    "21 Done",
  ]);
});

it("podRule Delete bypasses the budget, with the reason DeleteRule", () => {
  const ruled: DrainRule = rule({ podRules: [{ selector: {}, action: "Delete" }] });
  const { sent } = drained([model("a", seconds(1))], {
    budgets: [{ facts: budget("web", spent) }],
    rule: ruled,
  });
  expect(sent).toMatchObject([{ act: { kind: "Delete", graceSeconds: 30, reason: "DeleteRule" } }]);
});

it("the drain waits for a pod that is already terminating, but not for a stuck one", () => {
  const leaving = pod("leaving", { deletionAt: plus(startAt, seconds(20)) });
  const stuck = pod("stuck", { deletionAt: instant(startAt - 60_001) });
  const plan = planDrain({
    node: node(),
    pods: [leaving, stuck],
    budgets: [],
    rule: rule(),
    now: startAt,
  });
  const step = nextDrainActs({
    plan,
    startedAt: startAt,
    livePods: [leaving, stuck],
    progress: {},
    rule: rule(),
    now: startAt,
  });
  expect(step.acts).toEqual([]);
  expect(outcomes(step.progress)).toEqual({ leaving: "Leaving", stuck: "LeftBehind" });
  // Its own deadline and a minute.
  expect(step.askAgainAt).toBe(plus(startAt, millis(80_001)));
});

it.each([
  ["does not wait for a terminating pod", "under a notice", 20, "Done", "LeftBehind"],
  ["waits for a terminating pod", "by plan", 20, "Running", "Leaving"],
  ["still waits long after its grace period", "by plan", -3600, "Running", "Leaving"],
])("on an unreachable node the drain %s, %s", (...row) => {
  const [, by, endsAfter, verdict, outcome] = row;
  const taint = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" } as const;
  const pods = [pod("a", { deletionAt: plus(startAt, seconds(endsAfter)) })];
  const question = { pods, budgets: [], rule: rule(), now: startAt };
  const isNoticed = by === "under a notice";
  const plan = planDrain({ node: node({ taints: [taint] }), ...question, isNoticed });
  const state = { ...question, plan, startedAt: startAt, livePods: pods, progress: {} };
  const step = nextDrainActs(state);
  expect([step.verdict, outcomes(step.progress)]).toEqual([verdict, { a: outcome }]);
  expect(step.askAgainAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(startAt);
});

it("a pod of the same name with another uid is not evicted, but needs a new plan", () => {
  const old = pod("web-0");
  const plan = planDrain({ node: node(), pods: [old], budgets: [], rule: rule(), now: startAt });
  const namesake = pod("web-0", { uid: "another" });
  const ask = (livePods: readonly PodFacts[]) =>
    nextDrainActs({ plan, startedAt: startAt, livePods, progress: {}, rule: rule(), now: startAt });
  expect(ask([{ ...namesake, nodeName: "n2" }])).toMatchObject({ verdict: "Done", acts: [] });
  expect(ask([namesake])).toMatchObject({
    verdict: "Running",
    acts: [],
    unplanned: [{ uid: "another" }],
  });
});

it("a controller that takes over continues from the live pods alone", () => {
  const other = { ...shop, controller: { kind: "ReplicaSet", name: "shop-1", uid: "shop" } };
  const pods = [model("web", seconds(20)), model("held", seconds(1), other), dns(seconds(1))];
  const shopBudget = { ...budget("shop", spent), selector: { matchLabels: { app: "shop" } } };
  const { timeline, end } = drained(pods, {
    budgets: [{ facts: shopBudget }],
    notice: seconds(120),
    restartAfterMs: seconds(10),
  });
  expect(timeline.filter((line) => line.includes("web"))).toEqual([
    "0 web: Evict Accepted",
    "20 web: gone",
  ]);
  expect(timeline).toContain("88 held: Delete Accepted");
  expect(timeline.filter((line) => line.endsWith("dns: gone"))).toHaveLength(1);
  expect([end.verdict, end.counts.left]).toEqual(["Done", 0]);
});

it("the same state gives the same step, and is not changed", () => {
  const pods = [pod("a"), pod("b", { priority: 2_000_000_000 })];
  const plan = planDrain({ node: node(), pods, budgets: [], rule: rule(), now: startAt });
  const state = Object.freeze({
    plan,
    startedAt: startAt,
    livePods: pods,
    progress: Object.freeze({}),
    rule: rule(),
    now: startAt,
  });
  expect(nextDrainActs(state)).toEqual(nextDrainActs(state));
  expect(state.progress).toEqual({});
});
