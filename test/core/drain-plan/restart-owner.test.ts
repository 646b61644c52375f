import { expect, it } from "vitest";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { budget, node, pod, rule, startAt } from "../drain/drain-scene.ts";

const set = { kind: "StatefulSet", name: "db", uid: "db" };

it.each([
  ["a ReplicaSet", { ...set, group: "apps", kind: "ReplicaSet" }, "Wait RestartOwner"],
  ["a StatefulSet", { ...set, group: "apps" }, "Wait RestartOwner"],
  ["a StatefulSet of another API group", { ...set, group: "x.io" }, "Block SingleReplica"],
  ["another owner", { ...set, group: "apps", kind: "Rollout" }, "Block SingleReplica"],
])("a single replica of %s, which is to be restarted by its owner", (_, controller, expected) => {
  const allowance = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 };
  const { pods } = planDrain({
    ...{ node: node(), pods: [pod("db-0", { controller })], now: startAt },
    budgets: [budget("db", { ...allowance, expectedPods: 1, minAvailable: 1 })],
    rule: rule({ onSingleReplica: "RestartOwner" }),
  });

  expect(pods.map(({ action, reason }) => `${action} ${reason}`)).toEqual([expected]);
});
