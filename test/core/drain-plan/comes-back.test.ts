import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { type DrainQuestion, planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { plus, seconds } from "../../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "../drain/drain-scene.ts";

const unschedulable = "node.kubernetes.io/unschedulable";
const noticed = { deadlineAt: plus(startAt, seconds(120)) };

function fate(one: PodFacts, changes: Partial<DrainQuestion>): string {
  const scene = { node: node(), budgets: [], rule: rule(), now: startAt };
  const { pods, skipped } = planDrain({ ...scene, pods: [one], ...changes });
  const acting = pods.map((planned) => `${planned.action} ${planned.reason}`);
  return [...acting, ...skipped.map(({ reason }) => `Skip ${reason}`)].join(", ");
}

type How = Pick<PodFacts, "tolerations" | "bypassesScheduler">;

it.each<[string, How, string]>([
  ["tolerates everything", { tolerations: [{ operator: "Exists" }] }, "Skip ComesBack"],
  [
    "tolerates every NoSchedule",
    { tolerations: [{ operator: "Exists", effect: "NoSchedule" }] },
    "Skip ComesBack",
  ],
  [
    "tolerates only unschedulable nodes",
    { tolerations: [{ key: unschedulable, operator: "Exists" }] },
    "Evict Evictable",
  ],
  [
    "tolerates every NoExecute",
    { tolerations: [{ operator: "Exists", effect: "NoExecute" }] },
    "Evict Evictable",
  ],
  ["tolerates nothing", { tolerations: [] }, "Evict Evictable"],
  [
    "was placed there without the scheduler",
    { tolerations: [], bypassesScheduler: true },
    "Skip ComesBack",
  ],
])("plans a pod that arrived during the drain and %s", (_, how, fateOfLate) => {
  const late = pod("late", how);
  expect(fate(late, { beganWith: new Set(["uid-a"]) })).toBe(fateOfLate);
  expect(fate(late, { beganWith: new Set(["uid-a"]), ...noticed })).toBe(fateOfLate);
  expect(fate(late, { beganWith: new Set([late.uid]) })).toBe("Evict Evictable");
  expect(fate(late, {})).toBe("Evict Evictable");
  const bare = pod("late", { ...how, controller: undefined });
  const isSkipped = fateOfLate === "Skip ComesBack";
  const fateOfBare = isSkipped ? fateOfLate : "Evict NoController";
  expect(fate(bare, { beganWith: new Set(["uid-a"]) })).toBe(fateOfBare);
  expect(fate(bare, { beganWith: new Set([bare.uid]) })).toBe("Evict NoController");
  const leaving = pod("late", { ...how, deletionAt: plus(startAt, seconds(20)) });
  expect(fate(leaving, { beganWith: new Set(["uid-a"]) })).toBe("Wait Terminating");
});
