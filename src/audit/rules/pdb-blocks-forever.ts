import { allowedDisruptions } from "../disruption.ts";
import { type AuditedFleet, type DisruptionBudget, workloadsOf } from "../fleet.ts";
import { nameOfObject } from "../objects/manifest.ts";
import type { Remark, Rule } from "../rule.ts";

export const pdbBlocksForever: Rule = {
  id: "pdb-blocks-forever",
  severity: "error",
  title: "a PodDisruptionBudget never allows an eviction",
  why: "A maxUnavailable of 0, or a minAvailable as high as the replicas (a percentage rounds up: 50 % of one pod is one pod), refuses every eviction for ever; where an autoscaler may add replicas, for as long as it does not, which is a warning. A planned drain waits until its timeout, upgrades of the cluster stand still, and under a notice the pods stay to the end and are killed without their grace.",
  fix: "Leave at least one pod of room: maxUnavailable 1, or more replicas than minAvailable.",
  whenNotToUse:
    "Somebody must agree to each restart by hand, and the workload is kept off Spot nodes.",
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
    if (allowedDisruptions(fleet, budget) !== 0) return [];
    const workloads = workloadsOf(fleet, budget).filter((workload) => fleet.onSpot.has(workload));
    if (workloads.length === 0) return [];
    const held = workloads.map(nameOfObject).join(", ");
    const fix = "Allow one pod to go: maxUnavailable 1, or more replicas than minAvailable";
    const about = budget.manifest;
    if (allowedDisruptions(fleet, budget, "Most") !== 0) {
      const message = `${termOf(budget)} lets no pod of ${held} be evicted while the autoscaler keeps the least replicas`;
      return [{ severity: "warning", about, message, fix }];
    }
    const message = `${termOf(budget)} never lets a pod of ${held} be evicted`;
    return [{ severity: "error", about, message, fix }];
  });
}

function termOf(budget: DisruptionBudget): string {
  if (budget.maxUnavailable !== undefined) return `maxUnavailable ${budget.maxUnavailable}`;
  if (budget.minAvailable === undefined) return "A budget without minAvailable and maxUnavailable";
  return `minAvailable ${budget.minAvailable}`;
}
