import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { type Millis, millis, plus, seconds } from "../../../src/core/time/time.ts";
import { type DrainRun, type ModelPod, runDrain } from "./drain-model.ts";
import { budget, pod, rule, startAt } from "./drain-scene.ts";

/** When pods that a budget blocks are deleted under a notice, on the model of a node. */
const shop = { labels: { app: "shop" } };
const spent = { disruptionsAllowed: 0, currentHealthy: 2 };

function model(name: string, exitMs: Millis | undefined, facts: Partial<PodFacts> = {}): ModelPod {
  return { facts: pod(name, facts), exitMs };
}

function drained(pods: readonly ModelPod[], changes: Partial<DrainRun> = {}) {
  return runDrain({ pods, rule: rule(), ...changes });
}

it("with a budgetShare of 0 a held pod is deleted at once, to save its grace", () => {
  const { sent } = drained([model("held", seconds(3), { graceSeconds: 60 })], {
    budgets: [{ facts: budget("web", spent) }],
    rule: rule({ budgetShare: 0 }),
    notice: seconds(30),
  });
  expect(sent.map((one) => [one.afterMs, one.act.kind])).toEqual([
    [0, "Evict"],
    [0, "Delete"],
  ]);
  expect(sent[1]?.act).toMatchObject({ graceSeconds: 30 });
});

const oneAtATime = { facts: budget("web"), recoversMs: seconds(9) };

it("pods of one budget leave one by one for as long as their workload's known need allows", () => {
  const pods = ["a", "b", "c", "d"].map((name) => model(name, seconds(2)));
  const { sent, end, ended } = drained(pods, { budgets: [oneAtATime], notice: seconds(30) });
  const accepted = sent.filter((one) => one.answer === "Accepted");
  const name = (one: (typeof sent)[number]) => `${one.act.kind} ${one.act.pod.name}`;
  // At 0 s, then within a pause of 9 s and 18 s. The last pod, after three that took 2 s each,
  // needs at most 5 s, and the margin is 2 s: 23 s.
  expect(accepted.map(name)).toEqual(["Evict a", "Evict b", "Evict c", "Delete d"]);
  expect(accepted[1]?.afterMs).toBeGreaterThanOrEqual(9000);
  expect(accepted[1]?.afterMs).toBeLessThanOrEqual(12_000);
  expect(accepted[3]).toMatchObject({ afterMs: 23_000, act: { graceSeconds: 7 } });
  expect(end.counts).toMatchObject({ evicted: 3, forced: 1, cut: 1 + 2, cleanExit: 4, left: 0 });
  expect(ended).toEqual(Array(4).fill({ workload: "rs", took: 2000 }));
});

it("the records of earlier drains count from the start", () => {
  const held = { budgets: [{ facts: budget("web", spent) }], notice: seconds(30) };
  const remembered = Array(3).fill({ workload: "rs", took: seconds(2) });
  const { sent } = drained([model("held", seconds(2))], { ...held, remembered });
  expect(sent.at(-1)).toMatchObject({ afterMs: 23_000, act: { kind: "Delete", graceSeconds: 7 } });
});

it.each<[string, ModelPod]>([
  ["was killed", model("first", undefined, { graceSeconds: 3 })],
  ["was not ready", model("first", seconds(1), { ready: false })],
  ["was not running yet", model("first", seconds(1), { phase: "Pending" })],
  [
    "was already terminating",
    model("first", seconds(1), { deletionAt: plus(startAt, seconds(9)) }),
  ],
  ["has no controller", model("first", seconds(1), { controller: undefined })],
])("nothing is learned from a pod that %s", (_, first) => {
  const held = model("held", seconds(1), shop);
  const only = { ...budget("shop", spent), selector: { matchLabels: { app: "shop" } } };
  const { sent } = drained([first, held], { budgets: [{ facts: only }], notice: seconds(30) });
  // Half of the notice, less the margin.
  expect(sent.at(-1)).toMatchObject({ afterMs: 13_000, act: { kind: "Delete" } });
});

it("a pod that takes longer than earlier ones makes the others be deleted sooner", () => {
  const pods = [model("slow", seconds(25)), model("held", seconds(1), shop)];
  const only = { ...budget("shop", spent), selector: { matchLabels: { app: "shop" } } };
  const remembered = Array(10).fill({ workload: "rs", took: seconds(1) });
  const { sent } = drained(pods, { budgets: [{ facts: only }], notice: seconds(40), remembered });
  const forced = sent.find((one) => one.act.kind === "Delete");
  // Once it ends at 25 s, its workload would be expected to need 32 s; the share ends at 18 s.
  expect(forced?.afterMs).toBeGreaterThanOrEqual(18_000);
  expect(forced?.afterMs).toBeLessThan(25_000);
});

it.each([
  { what: "past the force time of its notice", until: seconds(16), more: { notice: seconds(30) } },
  {
    what: "with a budgetShare of 0",
    until: millis(500),
    more: { notice: seconds(30), rule: rule({ budgetShare: 0 }) },
  },
  {
    what: "past the force time of its timeout",
    until: seconds(40),
    more: { rule: rule({ onTimeout: "Proceed", timeoutMs: seconds(60) }) },
  },
])("a pod is evicted once the API server is no longer overloaded, $what", ({ until, more }) => {
  const { sent, end } = drained([model("web", seconds(3))], {
    ...more,
    api: (_, afterMs) =>
      afterMs < until
        ? { kind: "Overloaded", message: "busy", retryAfterMs: seconds(1) }
        : undefined,
  });
  const last = sent.at(-1);
  expect(last).toMatchObject({ answer: "Accepted", act: { kind: "Evict" } });
  // The longest pause between two retries.
  expect(last?.afterMs).toBeLessThan(until + 11_000);
  expect(end.counts).toMatchObject({ evicted: 1, forced: 0, left: 0 });
});
