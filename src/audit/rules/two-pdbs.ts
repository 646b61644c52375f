import { type AuditedFleet, budgetsOf } from "../fleet.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const twoPdbs: Rule = {
  id: "two-pdbs",
  severity: "error",
  title: "more than one PodDisruptionBudget selects the same pods",
  why: "The eviction API answers an error for a pod that two budgets select, always, even where both would allow it. No drain ever moves such a pod. Source: kubernetes pkg/registry/core/pod/storage/eviction.go.",
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
