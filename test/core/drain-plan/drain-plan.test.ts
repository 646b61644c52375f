import { expect, it } from "vitest";
import type { BudgetFacts, PodFacts } from "../../../src/core/cluster/pod.ts";
import { type DrainQuestion, planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import type { DrainRule, PodRule } from "../../../src/core/policy/policy.ts";
import {
  hours,
  type Instant,
  instant,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { budget, node, pod, rule, startAt } from "../drain/drain-scene.ts";

const web = { matchLabels: { app: "web" } };
const noticed = { deadlineAt: plus(startAt, seconds(120)) };

function plan(pods: readonly PodFacts[], changes: Partial<DrainQuestion> = {}) {
  return planDrain({ node: node(), pods, budgets: [], rule: rule(), now: startAt, ...changes });
}

/** What happens to a pod: its action, or `Skip`; with the reason. */
function fate(one: PodFacts, changes: Partial<DrainQuestion> = {}): string {
  const { pods, skipped } = plan([one], changes);
  const acting = pods.map((p) => `${p.action} ${p.reason}`);
  return [...acting, ...skipped.map((p) => `Skip ${p.reason}`)].join(", ");
}

function podRule(action: PodRule["action"], changes: Partial<PodRule> = {}): Partial<DrainRule> {
  return { podRules: [{ selector: web, action, ...changes }] };
}

const daemon = { kind: "DaemonSet", name: "logs", uid: "ds" };
const leavingSoon = { deletionAt: plus(startAt, seconds(20)) };
const stuck = { deletionAt: instant(startAt - 61_000) };

it.each<[string, Partial<PodFacts>, string]>([
  ["of a ReplicaSet", {}, "Evict Evictable"],
  [
    "of any other controller",
    { controller: { kind: "Rollout", name: "r", uid: "r" } },
    "Evict Evictable",
  ],
  ["that is pending", { phase: "Pending", ready: false }, "Evict Evictable"],
  ["in kube-system", { namespace: "kube-system" }, "Evict Evictable"],
  ["of a DaemonSet", { controller: daemon }, "Skip DaemonSet"],
  ["of a DaemonSet, terminating", { controller: daemon, ...leavingSoon }, "Skip DaemonSet"],
  ["of a DaemonSet, finished", { controller: daemon, phase: "Failed" }, "Skip Finished"],
  ["that is a mirror pod", { mirror: true, controller: undefined }, "Skip Mirror"],
  ["that is a finished mirror pod", { mirror: true, phase: "Failed" }, "Skip Mirror"],
  ["that succeeded", { phase: "Succeeded" }, "Skip Finished"],
  [
    "that failed, bare, with an emptyDir",
    { phase: "Failed", controller: undefined, emptyDir: true },
    "Skip Finished",
  ],
  ["that is terminating", leavingSoon, "Wait Terminating"],
  ["that is stuck past its deletion deadline", stuck, "Skip StuckTerminating"],
  ["without a controller", { controller: undefined }, "Evict NoController"],
  ["with an emptyDir", { emptyDir: true }, "Evict EmptyDir"],
  ["with a hostPath", { hostPath: true }, "Evict HostPath"],
  ["of another node", { nodeName: "n2" }, ""],
])("a pod %s: planned and under a notice", (_, changes, expected) => {
  expect(fate(pod("a", changes))).toBe(expected);
  expect(fate(pod("a", changes), noticed)).toBe(expected);
});

it("a bare pod with local data is named in a warning for each loss", () => {
  const made = plan([pod("a", { controller: undefined, emptyDir: true, hostPath: true })]);
  expect(made.warnings.map((w) => `${w.namespace}/${w.name} ${w.reason}`)).toEqual([
    "default/a NoController",
    "default/a EmptyDir",
    "default/a HostPath",
  ]);
});

it("an ordinary pod, and one whose rule says Evict, cause no warning", () => {
  expect(plan([pod("a")]).warnings).toEqual([]);
  const ruled = { rule: rule(podRule("Evict")) };
  expect(plan([pod("a", { controller: undefined, emptyDir: true })], ruled).warnings).toEqual([]);
});

it("a placeholder of Lastcall has no controller but loses nothing", () => {
  const labels = {
    "app.kubernetes.io/name": "lastcall",
    "app.kubernetes.io/component": "placeholder",
  };
  const made = plan([pod("room-1", { controller: undefined, labels })]);
  expect(made.pods).toMatchObject([{ action: "Evict", reason: "Evictable" }]);
  expect(made.warnings).toEqual([]);
});

it("a stuck pod is named in a warning", () => {
  expect(plan([pod("a", stuck)]).warnings).toMatchObject([
    { name: "a", reason: "StuckTerminating" },
  ]);
});

it("pods of an unreachable node are evicted, and the node is named in one warning", () => {
  const taint = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" } as const;
  const made = plan([pod("a"), pod("b")], { node: node({ taints: [taint] }) });
  expect(made.pods.map((p) => `${p.action} ${p.reason}`)).toEqual([
    "Evict NodeUnreachable",
    "Evict NodeUnreachable",
  ]);
  expect(made.warnings).toMatchObject([{ namespace: "", name: "n1", reason: "NodeUnreachable" }]);
});

it("a pod in a terminating namespace goes with it, and is deleted under a notice", () => {
  const terminatingNamespaces = new Set(["default"]);
  expect(fate(pod("a"), { terminatingNamespaces })).toBe("Wait NamespaceTerminating");
  expect(fate(pod("a"), { terminatingNamespaces, ...noticed })).toBe("Delete NamespaceTerminating");
});

it.each<[PodRule["action"], string, string]>([
  ["Evict", "Evict Evictable", "Evict Evictable"],
  ["Delete", "Delete DeleteRule", "Delete DeleteRule"],
  ["Skip", "Skip PolicySkip", "Skip PolicySkip"],
  ["Block", "Block BlockRule", "Evict Evictable"],
  ["WaitCompleted", "Wait WaitCompleted", "Wait WaitCompleted"],
])("a podRule %s: %s if planned, %s under a notice", (action, planned, pressed) => {
  const ruled = rule(podRule(action));
  expect(fate(pod("a"), { rule: ruled })).toBe(planned);
  expect(fate(pod("a"), { rule: ruled, ...noticed })).toBe(pressed);
});

it("the first podRule that selects a pod applies, in its namespaces only", () => {
  const rules = rule({
    podRules: [
      { selector: web, namespaces: ["shop"], action: "Skip" },
      { selector: web, action: "Delete" },
      { selector: {}, action: "Block" },
    ],
  });
  expect(fate(pod("a", { namespace: "shop" }), { rule: rules })).toBe("Skip PolicySkip");
  expect(fate(pod("a"), { rule: rules })).toBe("Delete DeleteRule");
  expect(fate(pod("a", { labels: {} }), { rule: rules })).toBe("Block BlockRule");
});

it("a DaemonSet pod is evicted only by a rule that selects it by label", () => {
  const shipper = pod("a", { controller: daemon });
  const everything = rule({ podRules: [{ selector: {}, action: "Evict" }] });
  expect(fate(shipper, { rule: everything })).toBe("Skip DaemonSet");
  const made = plan([pod("b", { priority: 2_000_000_000 }), shipper], {
    rule: rule(podRule("Evict")),
  });
  expect(made.pods.map((p) => `${p.name} ${p.reason}`)).toEqual([
    "b Evictable",
    "a DaemonSetByRule",
  ]);
});

it.each<[string, Record<string, string>, string]>([
  ["do-not-disturb true", { "lastcall.dev/do-not-disturb": "true" }, "Block DoNotDisturb"],
  ["do-not-disturb false", { "lastcall.dev/do-not-disturb": "false" }, "Evict Evictable"],
  [
    "do-not-disturb 2h at the age of 1 h",
    { "lastcall.dev/do-not-disturb": "2h" },
    "Block DoNotDisturb",
  ],
  [
    "do-not-disturb 1h at the age of 1 h",
    { "lastcall.dev/do-not-disturb": "1h" },
    "Evict Evictable",
  ],
  [
    "do-not-disturb with an invalid value",
    { "lastcall.dev/do-not-disturb": "ture" },
    "Block DoNotDisturb",
  ],
  ["do-not-disrupt true", { "karpenter.sh/do-not-disrupt": "true" }, "Block DoNotDisrupt"],
  ["do-not-disrupt 90m", { "karpenter.sh/do-not-disrupt": "90m" }, "Block DoNotDisrupt"],
  ["do-not-disrupt 30m", { "karpenter.sh/do-not-disrupt": "30m" }, "Evict Evictable"],
  [
    "safe-to-evict false",
    { "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" },
    "Block NotSafeToEvict",
  ],
  [
    "safe-to-evict true",
    { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" },
    "Evict Evictable",
  ],
])("the annotation %s: %s", (_, annotations, planned) => {
  const marked = pod("a", { annotations });
  expect(fate(marked)).toBe(planned);
  const pressed = plan([marked], noticed);
  expect(pressed.pods).toMatchObject([{ action: "Evict" }]);
  expect(pressed.warnings.map((w) => w.reason)).toEqual(
    planned.startsWith("Block") ? ["AnnotationOverruled"] : [],
  );
});

it("a block by age states its end, the longest of several counts, and Delete overrides it", () => {
  const annotations = { "lastcall.dev/do-not-disturb": "2h", "karpenter.sh/do-not-disrupt": "3h" };
  const marked = pod("a", { annotations });
  expect(plan([marked]).pods[0]?.freeAt).toBe(plus(startAt, hours(2)));
  expect(fate(marked, { rule: rule(podRule("Delete")) })).toBe("Delete DeleteRule");
  expect(fate(marked, { rule: rule(podRule("Evict")) })).toBe("Block DoNotDisrupt");
});

const alone = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 };
const spent = { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2 };

it.each<[string, Partial<BudgetFacts>, Partial<PodFacts>, string]>([
  ["allows one disruption", {}, {}, "Evict Evictable"],
  ["is exhausted for now", spent, {}, "Block BudgetExhausted"],
  [
    "has maxUnavailable 0",
    { ...spent, minAvailable: undefined, maxUnavailable: 0 },
    {},
    "Block BudgetImpossible",
  ],
  [
    "has maxUnavailable 0%",
    { ...spent, minAvailable: undefined, maxUnavailable: "0%" },
    {},
    "Block BudgetImpossible",
  ],
  [
    "has maxUnavailable 1%, which rounds up to one",
    { ...spent, minAvailable: undefined, maxUnavailable: "1%" },
    {},
    "Block BudgetExhausted",
  ],
  ["needs all replicas", { ...spent, minAvailable: 3 }, {}, "Block BudgetImpossible"],
  [
    "needs 90% of 5, which rounds up to 5",
    { ...spent, minAvailable: "90%", expectedPods: 5 },
    {},
    "Block BudgetImpossible",
  ],
  [
    "needs 80% of 5, which is 4",
    { ...spent, minAvailable: "80%", expectedPods: 5 },
    {},
    "Block BudgetExhausted",
  ],
  ["needs the single replica", { ...alone, minAvailable: 1 }, {}, "Block SingleReplica"],
  ["needs half of a single replica", { ...alone, minAvailable: "50%" }, {}, "Block SingleReplica"],
  ["is exhausted, for a pending pod", spent, { phase: "Pending", ready: false }, "Evict Evictable"],
  [
    "is exhausted, for a pod in an unknown phase",
    { ...spent, currentHealthy: 1 },
    { phase: "Unknown", ready: false },
    "Block BudgetExhausted",
  ],
  [
    "is exhausted, for an unready pod",
    { ...spent, currentHealthy: 1 },
    { ready: false },
    "Block BudgetExhausted",
  ],
  ["is exhausted but healthy, for an unready pod", spent, { ready: false }, "Evict Evictable"],
  [
    "is exhausted with AlwaysAllow, for an unready pod",
    { ...spent, currentHealthy: 1, unhealthyPodEvictionPolicy: "AlwaysAllow" },
    { ready: false },
    "Evict Evictable",
  ],
  ["has a stale status", { ...spent, observed: false }, {}, "Evict Evictable"],
  [
    "allows none, with a stale status",
    { observed: false, minAvailable: undefined, maxUnavailable: 0 },
    {},
    "Block BudgetImpossible",
  ],
  ["selects everything, and is exhausted", { ...spent, selector: {} }, {}, "Block BudgetExhausted"],
  ["is in another namespace", { ...spent, namespace: "other" }, {}, "Evict Evictable"],
  ["is exhausted, for a terminating pod", spent, leavingSoon, "Wait Terminating"],
])("a pod whose budget %s", (_, budgetChanges, podChanges, expected) => {
  const budgets = [budget("web", budgetChanges)];
  const made = plan([pod("a", podChanges)], { budgets });
  expect(fate(pod("a", podChanges), { budgets })).toBe(expected);
  expect(made.blocked.map((b) => b.reason)).toEqual(
    expected.startsWith("Block") ? [expected.slice("Block ".length)] : [],
  );
});

it("a pod that two budgets select cannot be evicted, whatever they allow", () => {
  const budgets = [budget("web"), budget("all", { selector: {} })];
  expect(fate(pod("a"), { budgets })).toBe("Block MultipleBudgets");
  expect(plan([pod("a")], { budgets }).pods[0]?.budget).toBe("default/all");
});

it("a budget without a status is judged by counting the pods, if all are known", () => {
  const unseen = budget("web", { observed: false, expectedPods: 0, minAvailable: 2 });
  const everyPod = [pod("a"), pod("b", { nodeName: "n2" })];
  expect(fate(pod("a"), { budgets: [unseen], everyPod })).toBe("Block BudgetImpossible");
  expect(fate(pod("a"), { budgets: [unseen] })).toBe("Evict Evictable");
});

it("under a notice a budget blocks nothing forever: evicted, warned about, deleted in time", () => {
  const budgets = [budget("web", { ...alone, minAvailable: 1 })];
  const made = plan([pod("a", { graceSeconds: 60 })], { budgets, ...noticed });
  expect(made.blocked).toEqual([]);
  expect(made.warnings).toMatchObject([{ name: "a", reason: "SingleReplica" }]);
  expect(made.pods).toMatchObject([
    // 120 s of notice, less 60 s of grace, less the margin of 2 s.
    {
      action: "Evict",
      startMs: 0,
      graceSeconds: 60,
      cut: false,
      forceAtMs: 58_000,
      budget: "default/web",
    },
  ]);
});

it.each<[string, Partial<DrainRule>, Partial<PodFacts>, string]>([
  ["Wait", { onSingleReplica: "Wait" }, {}, "Block SingleReplica"],
  ["RestartOwner", { onSingleReplica: "RestartOwner" }, {}, "Wait RestartOwner"],
  [
    "RestartOwner, without an owner",
    { onSingleReplica: "RestartOwner" },
    { controller: undefined },
    "Block SingleReplica",
  ],
  ["Wait, proceeding after a timeout", { onTimeout: "Proceed" }, {}, "Evict SingleReplica"],
])(
  "a single replica that its budget protects, with onSingleReplica %s",
  (_, changes, podChanges, expected) => {
    const budgets = [budget("web", { ...alone, minAvailable: 1 })];
    expect(fate(pod("a", podChanges), { budgets, rule: rule(changes) })).toBe(expected);
  },
);

it("a single replica without a budget is evicted like any other", () => {
  expect(fate(pod("a"), { rule: rule({ onSingleReplica: "RestartOwner" }) })).toBe(
    "Evict Evictable",
  );
});

it("workloads leave first, then critical pods and DNS, and the controller's own pod last", () => {
  const made = plan(
    [
      pod("self", { uid: "me" }),
      pod("dns", { labels: { "k8s-app": "kube-dns" } }),
      pod("critical", { priority: 2_000_000_000 }),
      pod("important", { priority: 1_000_000_000 }),
      pod("placeholder", { priority: -10 }),
    ],
    { self: "me" },
  );
  expect(made.pods.map((p) => `${p.tier} ${p.name} ${p.startMs / 1000}`)).toEqual([
    "0 important 0",
    "0 placeholder 0",
    "1 critical 30",
    "1 dns 30",
    "3 self 60",
  ]);
  expect(made.pods.at(-1)?.reason).toBe("OwnController");
});

it("a pod that wants more grace than the notice leaves is cut, and the plan says so", () => {
  const made = plan([pod("a", { graceSeconds: 60 })], { deadlineAt: plus(startAt, seconds(30)) });
  expect(made.pods).toMatchObject([
    {
      reason: "WillBeCut",
      startMs: 0,
      wantedGraceSeconds: 60,
      graceSeconds: 30,
      cut: true,
      // Half of the notice, less the margin of 2 s.
      forceAtMs: 13_000,
      forcedGraceSeconds: 17,
    },
  ]);
});

it("a plan remade during a notice counts the budgets' share from the start of the notice", () => {
  const changed = (knownAt: Instant | undefined) =>
    plan([pod("a", { graceSeconds: 60 })], { deadlineAt: plus(startAt, seconds(40)), knownAt })
      .pods[0]?.forceAtMs;
  // With 60 s of notice, 20 of them past: at second 28. With 40 s of notice: at second 18.
  expect(changed(plus(startAt, seconds(-20)))).toBe(8000);
  expect(changed(undefined)).toBe(18_000);
  // By a clock that is ahead of the controller's.
  expect(changed(plus(startAt, seconds(20)))).toBe(18_000);
});

it("a job may run as long as its rule allows and its grace still fits", () => {
  const waiting = (timeoutMs: ReturnType<typeof minutes> | undefined) =>
    plan([pod("a")], { ...noticed, rule: rule(podRule("WaitCompleted", { timeoutMs })) }).pods[0]
      ?.startMs;
  expect(waiting(minutes(1))).toBe(60_000);
  expect(waiting(minutes(10))).toBe(88_000);
  expect(waiting(undefined)).toBe(88_000);
});

it("a plan is frozen, and the same input gives the same plan", () => {
  const question = { pods: [pod("b"), pod("a")], budgets: [budget("web")], ...noticed };
  const made = plan(question.pods, question);
  expect(
    Object.isFrozen(made) && Object.isFrozen(made.pods) && made.pods.every(Object.isFrozen),
  ).toBe(true);
  expect(plan([...question.pods].reverse(), question)).toEqual(made);
});
