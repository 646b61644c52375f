import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import type { DrainCounts } from "../../../src/core/departure/departure.ts";
import { drainAccount } from "../../../src/core/drain/drain-time.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { type Millis, plus, seconds } from "../../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "./drain-scene.ts";

const none: DrainCounts = {
  ...{ total: 0, left: 0, evicted: 0, forced: 0, waiting: 0, blocked: 0, cut: 0 },
};
const dns = { labels: { "k8s-app": "kube-dns" } };
const marked = { annotations: { "lastcall.dev/do-not-disturb": "true" }, graceSeconds: 900 };

/** A drain that ended after eight seconds; the plan was made `plannedAfter` its start. */
function account(
  pods: readonly PodFacts[],
  counts: Partial<DrainCounts>,
  about: { readonly notice?: Millis; readonly plannedAfter?: Millis } = {},
): string {
  const { notice, plannedAfter = seconds(0) } = about;
  const now = plus(startAt, plannedAfter);
  const times = notice === undefined ? {} : { deadlineAt: plus(startAt, notice) };
  const plan = planDrain({ node: node(), pods, budgets: [], rule: rule(), now, ...times });
  const endedAt = plus(startAt, seconds(8));
  return drainAccount({ plan, startedAt: startAt, endedAt, counts: { ...none, ...counts } });
}

it.each<[string, string, string]>([
  [
    "tier after tier",
    account([pod("a"), pod("b", dns)], { total: 2 }),
    "2 pods in 8 s, planned within 60 s",
  ],
  ["one pod", account([pod("a")], { total: 1 }), "1 pod in 8 s, planned within 30 s"],
  ["nobody", account([], {}), "no pods to evict"],
  [
    "one that was planned to stay",
    account([pod("a"), pod("b", marked)], { total: 2 }),
    "2 pods in 8 s, planned within 30 s",
  ],
  [
    "one cut as planned, and one deleted regardless of its budget",
    account(
      [pod("a", { graceSeconds: 60 }), pod("b")],
      { total: 2, cut: 1, forced: 1 },
      { notice: seconds(40) },
    ),
    "2 pods in 8 s, planned within 40 s, 1 with a truncated grace period, as planned, 1 forced",
  ],
  [
    "two cut, one of them planned",
    account(
      [pod("a", { graceSeconds: 60 }), pod("b")],
      { total: 2, cut: 2 },
      { notice: seconds(40) },
    ),
    "2 pods in 8 s, planned within 40 s, 2 with a truncated grace period (planned: 1)",
  ],
  [
    "one that was planned to be cut and exited in time",
    account([pod("a", { graceSeconds: 60 })], { total: 1 }, { notice: seconds(40) }),
    "1 pod in 8 s, planned within 40 s, none with a truncated grace period (planned: 1)",
  ],
  [
    "a drain that was taken over",
    account([pod("a")], { total: 3 }, { plannedAfter: seconds(5) }),
    "3 pods in 8 s, planned within 35 s",
  ],
])("the summary of a drain compares what happened with the plan: %s", (_, found, expected) => {
  expect(found).toBe(expected);
});

it("the summary of a drain names the first pods that were left behind", () => {
  const notClean = ["a", "b", "c", "d"].map((name) => {
    return { namespace: "shop", name, outcome: "LeftBehind" as const };
  });
  expect(account([pod("x")], { total: 1, leftBehind: 4, notClean })).toBe(
    "1 pod in 8 s, planned within 30 s, 4 left behind (shop/a shop/b shop/c)",
  );
});
