/** What PodDisruptionBudgets allow a drain to do. */

import { fieldsOf, listOf, nameOf, valueAt } from "../../core/json/json-field.ts";
import { hasOrHave } from "../../core/reason/counted.ts";
import {
  type AuditedFleet,
  budgetsOf,
  type DisruptionBudget,
  mostReplicasOf,
  replicasOf,
  selectedBy,
  workloadsOf,
} from "../fleet.ts";
import { nameOfObject } from "../objects/manifest.ts";
import type { Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../report.ts";

export const pdbBlocksForever: Rule = {
  id: "pdb-blocks-forever",
  severity: "error",
  title: "a PodDisruptionBudget never allows an eviction",
  why: "A maxUnavailable of 0, or a minAvailable as high as the number of pods (a percentage rounds up: 50 % of one pod is one pod), refuses every eviction forever; if an autoscaler may add replicas, only until it does, which is a warning. So does a maxUnavailable or a percentage over pods whose owner has no number of replicas, such as those of a Job, a CronJob or a DaemonSet, even beside others and after they have finished, and over nothing but pods without an owner: Kubernetes cannot compute how many may be unavailable (the condition DisruptionAllowed has the reason SyncFailed) or expects none. A planned drain waits until its timeout, cluster upgrades stall, and under a notice the pods stay to the end and are killed without their grace period.",
  fix: "Allow at least one pod to be evicted: maxUnavailable 1, or more replicas than minAvailable. For pods without a number of replicas set minAvailable to a number, or exclude them from the selector.",
  whenNotToUse: "Each restart needs manual approval, and the workload is kept off Spot nodes.",
  bad: {
    yaml: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  good: {
    yaml: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  check: checkPdbBlocksForever,
};

function checkPdbBlocksForever(fleet: AuditedFleet): readonly Remark[] {
  return fleet.budgets.flatMap((budget): readonly Remark[] => {
    const workloads = workloadsOf(fleet, budget).filter((workload) => fleet.onSpot.has(workload));
    if (workloads.length === 0) return [];
    const held = podsOf(workloads);
    const uncountable = whyUncountable(fleet, budget);
    if (uncountable !== undefined) return [neverCounted(budget, { held, uncountable })];
    if (allowedDisruptions(fleet, budget) !== 0) return [];
    const fix = workloads.every(({ kind }) => kind === "Pod")
      ? "Set minAvailable to less than the number of pods"
      : "Allow one pod to be evicted: maxUnavailable 1, or more replicas than minAvailable";
    const about = budget.manifest;
    const field = fieldOf(budget);
    if (allowedDisruptions(fleet, budget, "Most") !== 0) {
      const message = `${termOf(budget)} allows no eviction of ${held} while the autoscaler keeps the minimum number of replicas`;
      return [{ severity: "warning", about, field, message, fix }];
    }
    const message = `${termOf(budget)} never allows ${held} to be evicted`;
    return [{ severity: "error", about, field, message, fix }];
  });
}

function podsOf(workloads: readonly Workload[]): string {
  const names = workloads.map(nameOfObject).join(", ");
  return workloads.every(({ kind }) => kind === "Pod") ? names : `a pod of ${names}`;
}

function neverCounted(
  budget: DisruptionBudget,
  why: { readonly held: string; readonly uncountable: string },
): Remark {
  const about = budget.manifest;
  const message = `${termOf(budget)} never allows ${why.held} to be evicted, because ${why.uncountable}`;
  const fix = "Set minAvailable to a number, or exclude such pods from the selector";
  return { severity: "error", about, field: fieldOf(budget), message, fix };
}

function fieldOf({ minAvailable }: DisruptionBudget): Remark["field"] {
  return ["spec", minAvailable === undefined ? "maxUnavailable" : "minAvailable"];
}

/** Kinds with pods, but without a `scale` subresource. A CronJob's pods belong to its Jobs. */
const withoutReplicas: ReadonlySet<string> = new Set(["Job", "CronJob", "DaemonSet"]);

/**
 * Why Kubernetes cannot tell how many of the budget's pods may be unavailable, and so allows none:
 * the real controller said so, or will. Only a number as minAvailable needs no number of replicas.
 * Source: kubernetes pkg/controller/disruption `getExpectedScale`, which looks at every pod that is
 * selected, finished ones too.
 */
function whyUncountable(fleet: AuditedFleet, budget: DisruptionBudget): string | undefined {
  const { minAvailable, maxUnavailable } = budget;
  if (maxUnavailable === undefined && typeof minAvailable !== "string") return undefined;
  const failure = syncFailureOf(budget);
  if (failure !== undefined) return `the cluster cannot compute the budget: ${failure}`;
  const selected = withPods(fleet, selectedBy(fleet, budget));
  const scaleless = selected.filter(({ kind }) => withoutReplicas.has(kind)).map(nameOfObject);
  if (scaleless.length > 0) {
    return `${scaleless.join(", ")} ${hasOrHave(scaleless.length)} no number of replicas`;
  }
  const isBare = selected.length > 0 && selected.every(({ kind }) => kind === "Pod");
  return isBare ? "pods without an owner are not expected" : undefined;
}

/** What a recorded budget says about itself; finished pods are seen here alone. */
function syncFailureOf({ manifest }: DisruptionBudget): string | undefined {
  const conditions = listOf(valueAt(manifest.json, ["status", "conditions"])).map(fieldsOf);
  const failed = conditions.find((one) => one.status === "False" && one.reason === "SyncFailed");
  return failed && (nameOf(failed.message) ?? "SyncFailed");
}

function termOf(budget: DisruptionBudget): string {
  if (budget.maxUnavailable !== undefined) return `maxUnavailable ${budget.maxUnavailable}`;
  if (budget.minAvailable === undefined) return "A budget without minAvailable and maxUnavailable";
  return `minAvailable ${budget.minAvailable}`;
}

/**
 * How many disruptions a budget allows at a time while all pods are healthy; undefined if the
 * specification does not say (unknown replicas, nothing selected, an owner that is not replicated).
 * Pods without an owner are healthy, but not expected. Percentages of both fields round up. If an
 * autoscaler sets the number of replicas, its lower or upper bound is used. Source: kubernetes
 * pkg/controller/disruption `getExpectedPodCount`.
 */
function allowedDisruptions(
  fleet: AuditedFleet,
  budget: DisruptionBudget,
  bound: "Least" | "Most" = "Least",
): number | undefined {
  const workloads = workloadsOf(fleet, budget);
  if (refusesAll(budget, withPods(fleet, workloads))) return 0;
  const owners = workloads.filter(({ kind }) => kind !== "Pod");
  const bare = workloads.length - owners.length;
  if (!owners.every(isReplicated)) return undefined;
  const countOf = bound === "Least" ? replicasOf : mostReplicasOf;
  const counts = owners.map((workload) => countOf(fleet, workload));
  if (counts.some((count) => count === undefined)) return undefined;
  const expected = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
  if (expected + bare === 0) return undefined;
  const { maxUnavailable, minAvailable } = budget;
  const asked = amountOf(maxUnavailable ?? minAvailable, expected);
  if (asked === undefined) return undefined;
  const needed = maxUnavailable === undefined ? asked : Math.max(0, expected - asked);
  return Math.max(0, expected + bare - needed);
}

/**
 * Whether a budget refuses every eviction, whatever the number of pods and whoever owns them: its
 * maxUnavailable is 0, or it has neither field and so expects no pods. With a pod without an owner,
 * another one may be unavailable.
 */
function refusesAll(budget: DisruptionBudget, selected: readonly Workload[]): boolean {
  if (selected.length === 0) return false;
  if (budget.maxUnavailable === undefined) return budget.minAvailable === undefined;
  const bare = selected.filter(({ kind }) => kind === "Pod").length;
  return amountOf(budget.maxUnavailable, 1) === 0 && (bare === 0 || bare === selected.length);
}

function withPods(fleet: AuditedFleet, workloads: readonly Workload[]): readonly Workload[] {
  return workloads.filter((workload) => mostReplicasOf(fleet, workload) !== 0);
}

/** A whole number, or a percentage of `expected` rounded up; undefined for anything else. */
function amountOf(written: unknown, expected: number): number | undefined {
  if (typeof written === "number") return Number.isSafeInteger(written) ? written : undefined;
  const percent = typeof written === "string" ? /^(\d+)%$/.exec(written)?.[1] : undefined;
  return percent === undefined ? undefined : Math.ceil((Number(percent) * expected) / 100);
}

export const pdbMissing: Rule = {
  id: "pdb-missing",
  severity: "info",
  title: "several replicas, and no PodDisruptionBudget protects them",
  why: "Without a budget, two nodes that leave within the same minutes may take all replicas at once. The rule sees only the input: a budget that is defined elsewhere is not seen.",
  fix: "Add a PodDisruptionBudget with maxUnavailable 1 (or a share).",
  whenNotToUse: "The replicas are independent workers and losing all of them for a minute is fine.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  good: {
    yaml: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  check: checkPdbMissing,
};

function checkPdbMissing(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const replicas = replicasOf(fleet, workload) ?? 0;
    if (!isReplicated(workload) || replicas < 2) return [];
    if (budgetsOf(fleet, workload).length > 0) return [];
    const message = `No PodDisruptionBudget in the input selects its ${replicas} replicas`;
    const fix = "Add a PodDisruptionBudget with maxUnavailable 1";
    return [{ severity: "info", about: workload, message, fix }];
  });
}

export const twoPdbs: Rule = {
  id: "two-pdbs",
  severity: "error",
  title: "more than one PodDisruptionBudget selects the same pods",
  why: "The eviction API always returns an error for a pod that two budgets select, even if both would allow the eviction. No drain can move such a pod. Source: kubernetes pkg/registry/core/pod/storage/eviction.go.",
  fix: "Keep one budget for these pods; narrow the selector of the other.",
  whenNotToUse: "Never: no eviction of such a pod can succeed.",
  bad: {
    yaml: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: everything}
spec: {maxUnavailable: 30%, selector: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  good: {
    yaml: `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: worker}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: worker}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  check: checkTwoPdbs,
};

function checkTwoPdbs(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    if (workload.kind === "DaemonSet") return [];
    const names = new Set(budgetsOf(fleet, workload).map((budget) => budget.manifest.name));
    if (names.size < 2) return [];
    const message = `The PodDisruptionBudgets ${[...names].sort().join(" and ")} select the same pods, so every eviction fails`;
    const fix = "Keep one of the budgets for these pods, and narrow the selector of the others";
    return [{ severity: "error", about: workload, message, fix }];
  });
}
