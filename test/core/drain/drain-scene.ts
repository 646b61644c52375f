import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { BudgetFacts, PodFacts } from "../../../src/core/cluster/pod.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import { type Instant, instant, minutes } from "../../../src/core/time/time.ts";

/** Builders for drain tests: an ordinary pod, budget, node and rule, each with changes. */
export const startAt: Instant = instant(1_800_000_000_000);

export function node(changes: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: "n1",
    uid: "node-uid",
    labels: {},
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    ...changes,
  };
}

export function pod(name: string, changes: Partial<PodFacts> = {}): PodFacts {
  return {
    namespace: "default",
    name,
    uid: `uid-${name}`,
    nodeName: "n1",
    phase: "Running",
    ready: true,
    labels: { app: "web" },
    annotations: {},
    priority: 0,
    graceSeconds: 30,
    graceSource: "Set",
    controller: { kind: "ReplicaSet", name: "web-7f", uid: "rs" },
    mirror: false,
    emptyDir: false,
    hostPath: false,
    volumeClaims: [],
    tolerations: [],
    startedAt: instant(startAt - 3_600_000),
    ...changes,
  };
}

/** Three healthy pods, one of which may be evicted. */
export function budget(name: string, changes: Partial<BudgetFacts> = {}): BudgetFacts {
  return {
    namespace: "default",
    name,
    uid: `uid-${name}`,
    selector: { matchLabels: { app: "web" } },
    minAvailable: 2,
    unhealthyPodEvictionPolicy: "IfHealthyBudget",
    disruptionsAllowed: 1,
    currentHealthy: 3,
    desiredHealthy: 2,
    expectedPods: 3,
    observed: true,
    ...changes,
  };
}

export function rule(changes: Partial<DrainRule> = {}): DrainRule {
  return {
    timeoutMs: minutes(5),
    onTimeout: "RollBack",
    onSingleReplica: "Wait",
    budgetShare: 0.5,
    podRules: [],
    ...changes,
  };
}
