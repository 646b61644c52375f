import { describe, expect, it } from "vitest";
import { drainObstacle } from "../../../src/core/drain-plan/drain-obstacle.ts";
import type { DrainPlan, PlannedPod } from "../../../src/core/drain-plan/drain-plan.ts";
import { minutes, plus } from "../../../src/core/time/time.ts";
import { rule, startAt } from "../drain/drain-scene.ts";
import { aDeparture, aNode } from "../fleet-builder.ts";

const db = { namespace: "shop", name: "db-0", uid: "db", action: "Block", tier: 0 };

function planOf(...pods: readonly object[]): DrainPlan {
  const all = pods.map((pod) => ({ ...db, ...pod }) as unknown as PlannedPod);
  return { node: "n1", at: startAt, pods: all } as unknown as DrainPlan;
}

/** A departure of the node that has ended and left `names` behind. */
function ended(outcome: "RolledBack" | "Planned", names: readonly string[], order = 1) {
  const notClean = names.map((name) => ({ namespace: "shop", name, outcome: "LeftBehind" }));
  const endedAt = plus(startAt, minutes(order));
  const status = { phase: "Ended", outcome, endedAt, drain: { notClean } };
  return aDeparture(aNode("n1"), { name: `n1-${order}`, status: status as never });
}

const exhausted = planOf({ reason: "BudgetExhausted", detail: "the budget db" });

describe("a planned drain", () => {
  it.each([
    ["is kept from starting by an impossible budget", { reason: "BudgetImpossible" }, true],
    ["is kept from starting by an annotation without an end", { reason: "DoNotDisturb" }, true],
    [
      "is kept from starting by an annotation that ends after its timeout",
      { reason: "DoNotDisturb", freeAt: plus(startAt, minutes(6)) },
      true,
    ],
    [
      "waits for an annotation that ends within its timeout",
      { reason: "DoNotDisturb", freeAt: plus(startAt, minutes(4)) },
      false,
    ],
    ["waits for a budget that is used up now", { reason: "BudgetExhausted" }, false],
    ["waits for a job", { action: "Wait", reason: "WaitCompleted" }, false],
  ])("%s", (_, pod, isKept) => {
    const found = drainObstacle(planOf(pod), { rule: rule(), former: [] });
    expect(found !== undefined).toBe(isKept);
    if (isKept) expect(found).toContain("shop/db-0 ");
  });

  it.each(["Proceed", "Wait"] as const)("with onTimeout %s is not kept from starting", (mode) => {
    const plan = planOf({ reason: "BudgetImpossible" });
    expect(drainObstacle(plan, { rule: rule({ onTimeout: mode }), former: [] })).toBeUndefined();
  });

  it.each([
    [
      "is not tried again while the pod that blocked it is blocked",
      [ended("RolledBack", ["db-0"])],
    ],
    [
      "is tried again if the last one was not blocked by it",
      [ended("RolledBack", ["db-0"], 1), ended("Planned", [], 2)],
    ],
    ["is tried again if another pod blocked it", [ended("RolledBack", ["db-1"])]],
  ])("%s", (name, former) => {
    const found = drainObstacle(exhausted, { rule: rule(), former });
    expect(found !== undefined).toBe(name.startsWith("is not"));
  });

  it.each([
    ["if the last one left pods behind", [ended("RolledBack", ["db-0", "db-1"])], true],
    ["unless the last one ended well", [ended("RolledBack", ["db-0"]), ended("Planned", [], 2)]],
    ["unless there was none", []],
  ])("is not tried again while its pods cannot be listed, %s", (_, former, isKept = false) => {
    const found = drainObstacle("Unlisted", { rule: rule(), former });
    expect(found !== undefined).toBe(isKept);
    if (isKept) expect(found).toMatch(/^shop\/db-0 was left by the last drain.*, and 1 more pod$/);
  });

  it("names the first such pod, and how many more there are", () => {
    const pods = ["a", "b", "c"].map((name) => ({ name, reason: "BlockRule" }));
    const found = drainObstacle(planOf(...pods), { rule: rule(), former: [] });
    expect(found).toMatch(/^shop\/a is not evicted, .*, and 2 more pods$/);
  });
});
