import { criticalPriority } from "../../core/drain-plan/grace-budget.ts";
import type { AuditedFleet } from "../fleet.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const criticalOnSpot: Rule = {
  id: "critical-on-spot",
  severity: "warning",
  title: "a system-critical workload can land on Spot nodes",
  why: "Pods of priority 2000000000 and above (system-cluster-critical, system-node-critical) are what the cluster itself stands on: DNS, metrics, autoscalers, admission webhooks. On a Spot node they go with it, often together with the node that was to take over. DaemonSets belong on every node and jobs are retried, so both are skipped.",
  fix: "Keep it on stable nodes by a node selector or required node affinity.",
  whenNotToUse: "Several replicas are spread over Spot and stable nodes.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: dns, namespace: kube-system}
spec:
  template:
    spec:
      priorityClassName: system-cluster-critical
      containers: [{name: dns, image: dns}]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: dns, namespace: kube-system}
spec:
  template:
    spec:
      priorityClassName: system-cluster-critical
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: cloud.google.com/gke-spot, operator: DoesNotExist}]
      containers: [{name: dns, image: dns}]
`,
  },
  check: checkCriticalOnSpot,
};

const harmless = new Set(["DaemonSet", "Job", "CronJob"]);

function checkCriticalOnSpot(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet)
    .filter(({ priority, kind }) => priority >= criticalPriority && !harmless.has(kind))
    .map((workload) => ({
      severity: "warning",
      about: workload,
      message: `Has the system-critical priority ${workload.priority} and may be placed on Spot nodes`,
      fix: "Keep it on stable nodes by a node selector or required node affinity",
    }));
}
