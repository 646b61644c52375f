import { type AuditedFleet, budgetsOf, replicasOf } from "../fleet.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const pdbMissing: Rule = {
  id: "pdb-missing",
  severity: "info",
  title: "several replicas, and no PodDisruptionBudget holds them together",
  why: "Without a budget nothing keeps two nodes that leave in the same minutes from taking all replicas at once. The rule sees only what the input holds: a budget that lives elsewhere is not seen.",
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
    const message = `No PodDisruptionBudget of the input selects its ${replicas} replicas`;
    const fix = "Add a PodDisruptionBudget with maxUnavailable 1";
    return [{ severity: "info", about: workload, message, fix }];
  });
}
