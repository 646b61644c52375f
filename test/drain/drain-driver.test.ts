import { expect, it } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { DrainStep } from "../../src/core/drain/drain-step.ts";
import { TerminationMemory } from "../../src/core/drain/drain-time.ts";
import { minutes, plus } from "../../src/core/time/time.ts";
import { DrainDriver } from "../../src/drain/drain-driver.ts";
import { budget, node, pod, rule, startAt } from "../core/drain/drain-scene.ts";

const job = pod("job", { labels: { app: "job" }, startedAt: plus(startAt, minutes(-60)) });
const web = pod("web");
const marked = pod("marked", {
  annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" },
});

const waits = rule({
  podRules: [
    { selector: { matchLabels: { app: "job" } }, action: "WaitCompleted", timeoutMs: minutes(10) },
  ],
});

/** A planned drain whose acts are not carried out; each step gets the pods that are left. */
function drainOf() {
  let now = startAt;
  const driver = new DrainDriver({
    actor: {} as never,
    now: () => now,
    rng: seededRng(1),
    terminations: new TerminationMemory(),
  });
  return (afterMinutes: number, livePods: readonly PodFacts[]): DrainStep => {
    now = plus(startAt, minutes(afterMinutes));
    const pods = {
      node: node(),
      livePods,
      ownPods: livePods,
      budgets: [budget("web", { disruptionsAllowed: 0 })],
    };
    const times = { startedAt: startAt, deadlineAt: undefined, knownAt: startAt };
    return driver.step({ ...pods, ...times, rule: waits, isNoticed: false }).step;
  };
}

const asked = ({ acts }: DrainStep) => acts.map(({ kind, pod: { name } }) => `${kind} ${name}`);

it("the wait for a job is not extended by a new plan", () => {
  const at = drainOf();
  expect(asked(at(0, [job, marked]))).toEqual(["Evict marked"]);
  // The plan changes, as the marked pod is gone.
  at(4, [job]);
  expect(asked(at(9.99, [job]))).toEqual([]);
  expect(asked(at(10, [job]))).toEqual(["Evict job"]);
});

it("a job whose mark expires during the drain is waited for as if it had none", () => {
  const at = drainOf();
  const annotations = { "lastcall.dev/do-not-disturb": "1h5m" };
  const held = { ...job, annotations };
  expect(asked(at(0, [held]))).toEqual([]);
  expect(asked(at(5, [held]))).toEqual([]);
  expect(asked(at(9.99, [held]))).toEqual([]);
  expect(asked(at(10, [held]))).toEqual(["Evict job"]);
});

it("the timeout counts from the end of a wait, even if a newer plan has no wait", () => {
  const at = drainOf();
  at(0, [job, marked, web]);
  at(9, [web]);
  expect(at(14.99, [web]).verdict).toBe("Running");
  expect(at(15, [web]).verdict).toBe("TimedOut");
});

it("a pod that is recreated on the node despite the cordon is not evicted again, nor waited for", () => {
  const at = drainOf();
  const loose = { labels: {}, tolerations: [{ operator: "Exists" as const }] };
  const [first, second] = [pod("first", loose), pod("second", loose)];
  expect(asked(at(0, [first]))).toEqual(["Evict first"]);
  expect(asked(at(0.1, [first, second]))).toEqual([]);
  expect(at(0.2, [second]).verdict).toBe("Done");
});
