/** What PodDisruptionBudgets allow a drain to do. */

import { counted, isOrAre } from "../../core/reason/counted.ts";
import {
  type AuditedFleet,
  budgetsOf,
  type DisruptionBudget,
  replicasOf,
  selectedBy,
} from "../fleet.ts";
import { nameOfObject } from "../objects/manifest.ts";
import type { Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../report.ts";
import { allowedDisruptions, whyUncountable } from "./allowed-disruptions.ts";

export const pdbBlocksForever: Rule = {
  id: "pdb-blocks-forever",
  severity: "error",
  title: "a PodDisruptionBudget never allows an eviction",
  why: "A maxUnavailable of 0, or a minAvailable as high as the number of pods (a percentage rounds up: 50 % of one pod is one pod), refuses every eviction forever; if an autoscaler, a Job or another copy of the object in the input may add pods, only until then, which is a warning. So does a maxUnavailable or a percentage over pods whose owner has no number of replicas, such as those of a Job, a CronJob or a DaemonSet, even beside others and after they have finished, and over nothing but pods without an owner: Kubernetes cannot compute how many may be unavailable (the condition DisruptionAllowed has the reason SyncFailed) or expects none. With nothing but DaemonSets that is a warning, since a drain leaves their pods. A number as minAvailable is compared with all healthy pods, whatever owns them, also with those of a Job. A planned drain waits until its timeout, cluster upgrades stall, and under a notice the pods stay to the end and are killed without their grace period.",
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
    const landing = selectedBy(fleet, budget).filter((workload) => fleet.onSpot.has(workload));
    const drained = landing.filter(({ kind }) => kind !== "DaemonSet");
    return drained.length > 0
      ? onDrained(fleet, budget, drained)
      : onDaemonSets(fleet, budget, landing);
  });
}

function onDrained(
  fleet: AuditedFleet,
  budget: DisruptionBudget,
  workloads: readonly Workload[],
): readonly Remark[] {
  const about = budget.manifest;
  const field = fieldOf(budget);
  const held = podsOf(workloads);
  const uncountable = whyUncountable(fleet, budget);
  if (uncountable !== undefined) {
    const message = `${termOf(budget)} never allows ${held} to be evicted, because ${uncountable}`;
    return [{ severity: "error", about, field, message, fix: fixForUncounted }];
  }
  const allowed = allowedDisruptions(fleet, budget);
  if (allowed === undefined || allowed.least > 0) return [];
  const fix = workloads.every(({ kind }) => kind === "Pod")
    ? "Set minAvailable to less than the number of pods"
    : "Allow one pod to be evicted: maxUnavailable 1, or more replicas than minAvailable";
  if (allowed.most > 0) {
    const { fewestPods: pods } = allowed;
    const message = `${termOf(budget)} allows no eviction of ${held} while there ${isOrAre(pods)} only ${counted(pods, "pod")}`;
    return [{ severity: "warning", about, field, message, fix }];
  }
  const message = `${termOf(budget)} never allows ${held} to be evicted`;
  return [{ severity: "error", about, field, message, fix }];
}

const fixForUncounted = "Set minAvailable to a number, or exclude such pods from the selector";

/**
 * A drain leaves the pods of a DaemonSet where they are. Source of what evicts them: Karpenter
 * pkg/controllers/node/termination/terminator, which takes them last.
 */
function onDaemonSets(
  fleet: AuditedFleet,
  budget: DisruptionBudget,
  workloads: readonly Workload[],
): readonly Remark[] {
  const why = workloads.length === 0 ? undefined : whyUncountable(fleet, budget);
  if (why === undefined) return [];
  const message = `${termOf(budget)} never allows ${podsOf(workloads)} to be evicted, because ${why}; a drain leaves such pods, but Karpenter and podRules evict them`;
  const about = budget.manifest;
  return [{ severity: "warning", about, field: fieldOf(budget), message, fix: fixForUncounted }];
}

/** Two copies of one object are one. */
function podsOf(workloads: readonly Workload[]): string {
  const names = [...new Set(workloads.map(nameOfObject))].join(", ");
  return workloads.every(({ kind }) => kind === "Pod") ? names : `a pod of ${names}`;
}

function fieldOf({ minAvailable }: DisruptionBudget): Remark["field"] {
  return ["spec", minAvailable === undefined ? "maxUnavailable" : "minAvailable"];
}

function termOf(budget: DisruptionBudget): string {
  if (budget.maxUnavailable !== undefined) return `maxUnavailable ${budget.maxUnavailable}`;
  if (budget.minAvailable === undefined) return "A budget without minAvailable and maxUnavailable";
  return `minAvailable ${budget.minAvailable}`;
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
