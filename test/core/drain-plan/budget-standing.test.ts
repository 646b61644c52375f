import { describe, expect, it } from "vitest";
import type { BudgetFacts, OwnerFacts, PodFacts } from "../../../src/core/cluster/pod.ts";
import { budgetStanding, whyNeverAllowed } from "../../../src/core/drain-plan/budget-standing.ts";
import { budget, pod } from "../drain/drain-scene.ts";

const noScale = "jobs.batch does not implement the scale subresource";
const spent = { minAvailable: undefined, maxUnavailable: 1, disruptionsAllowed: 0 };
const neverSynced = { ...spent, observed: false, expectedPods: 0 };
const job: OwnerFacts = { group: "batch", kind: "Job", name: "report", uid: "j" };
const bare = { controller: undefined };

/** The kind of the standing and, of an impossible one, the words after the budget's name. */
function standing(
  changes: Partial<BudgetFacts>,
  pods: readonly Partial<PodFacts>[],
  everyPod: "Known" | "Unknown" = "Unknown",
): string {
  const all = pods.map((one, at) => pod(`p${at}`, one));
  const [first = pod("none")] = all;
  const found = budgetStanding(first, {
    budgets: [budget("web", changes)],
    everyPod: everyPod === "Known" ? all : undefined,
  });
  return found.kind === "Impossible" ? found.detail.replace("default/web ", "") : found.kind;
}

describe("a budget that the disruption controller cannot compute", () => {
  const failed = `allows none while the disruption controller cannot compute it: ${noScale}`;

  it.each<[string, Partial<BudgetFacts>]>([
    ["was never observed", { ...neverSynced, syncFailure: noScale }],
    [
      "was observed before, when it had fewer pods than it needs now",
      { ...spent, syncFailure: noScale, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3 },
    ],
    ["has a percentage", { ...spent, maxUnavailable: "50%", syncFailure: noScale }],
  ])("never allows an eviction if it %s", (_, changes) => {
    expect(standing(changes, [{}])).toBe(failed);
    expect(whyNeverAllowed(budget("web", changes))).toBe(failed);
  });

  it("releases a pod that is not ready if it says AlwaysAllow", () => {
    const policy = { unhealthyPodEvictionPolicy: "AlwaysAllow" } as const;
    expect(standing({ ...neverSynced, syncFailure: noScale, ...policy }, [{ ready: false }])).toBe(
      "Free",
    );
  });
});

describe("a budget over pods without a number of replicas", () => {
  const alone = "expects no pods, because those that it selects have no controller";

  it("never allows the eviction of bare pods, of which it expects none", () => {
    const changes = { ...spent, currentHealthy: 2, desiredHealthy: 0, expectedPods: 0 };
    expect(standing(changes, [bare])).toBe(alone);
    expect(whyNeverAllowed(budget("web", changes))).toBe(alone);
  });

  it("waits for a bare pod among others that it expects", () => {
    const changes = { ...spent, currentHealthy: 2, desiredHealthy: 2, expectedPods: 3 };
    expect(standing(changes, [bare])).toBe("Exhausted");
  });

  it.each<[string, Partial<BudgetFacts>, readonly Partial<PodFacts>[], string]>([
    ["of a Job", {}, [{ controller: job }], "allows none, because it selects a pod of Job report"],
    [
      "of a Deployment and a finished one of a Job",
      {},
      [{}, { controller: job, phase: "Succeeded" }],
      "allows none, because it selects a pod of Job report",
    ],
    [
      "of a Job, by percentage",
      { maxUnavailable: undefined, minAvailable: "50%" },
      [{ controller: job }],
      "allows none, because it selects a pod of Job report",
    ],
    [
      "of a Job, by number",
      { maxUnavailable: undefined, minAvailable: 0 },
      [{ controller: job }],
      "Free",
    ],
    [
      "of a pod, as a driver of Spark owns its executors",
      {},
      [{ controller: { ...job, group: "", kind: "Pod" } }],
      "allows none, because it selects a pod of Pod report",
    ],
    [
      "of a kind called Job in another group",
      {},
      [{ controller: { ...job, group: "batch.example.com" } }],
      "Free",
    ],
    ["without a controller", {}, [bare, bare], alone],
    ["without a controller, beside others", {}, [bare, {}], "Free"],
    ["of a Deployment", {}, [{}, {}], "Free"],
  ])("is predicted before the controller has looked, for pods %s", (_, changes, pods, wanted) => {
    expect(standing({ ...neverSynced, ...changes }, pods, "Known")).toBe(wanted);
  });
});

it("a budget without minAvailable and maxUnavailable expects no pods, and allows none", () => {
  const changes = { minAvailable: undefined, disruptionsAllowed: 0, expectedPods: 0 };
  const why = "has neither minAvailable nor maxUnavailable";
  expect(standing(changes, [{}])).toBe(why);
  expect(whyNeverAllowed(budget("web", { ...changes, currentHealthy: 2 }))).toBe(why);
});

it("a budget that needs 100% of its pods never allows an eviction, unless it selects none", () => {
  const changes = { minAvailable: "100%", disruptionsAllowed: 0, expectedPods: 3 };
  expect(whyNeverAllowed(budget("web", changes))).toBe("requires minAvailable 100% of 3");
  const empty = { expectedPods: 0, currentHealthy: 0 };
  expect(whyNeverAllowed(budget("web", { ...changes, ...empty }))).toBeUndefined();
});
