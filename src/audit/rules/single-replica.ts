import { type AuditedFleet, budgetsOf, replicasOf, workloadsOf } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const singleReplica: Rule = {
  id: "single-replica",
  severity: "warning",
  title: "one pod is all there is",
  why: "When its node goes, the service is away until a new pod is scheduled, pulled and ready; on a Spot node that happens at any time. A pod without a controller does not come back at all. Where a PodDisruptionBudget counts the pod together with those of other workloads of the same kind and containers, as one workload a zone has it, it is information.",
  fix: "Run two replicas or more, or keep the workload on stable nodes.",
  whenNotToUse: "A pause of minutes is acceptable, or two copies must never run at once.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template: {spec: {containers: [{name: web, image: web}]}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template: {spec: {containers: [{name: web, image: web}]}}
`,
  },
  check: checkSingleReplica,
};

function checkSingleReplica(fleet: AuditedFleet): readonly Remark[] {
  const fix = "Run at least two replicas, or keep it on nodes that are not Spot";
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const found = judge(fleet, workload);
    return found === undefined ? [] : [{ ...found, about: workload, fix }];
  });
}

function judge(
  fleet: AuditedFleet,
  workload: Workload,
): Pick<Remark, "severity" | "message"> | undefined {
  if (workload.kind === "Pod") {
    if (workload.template.restartPolicy !== "Always") return undefined;
    const message = "No controller makes this pod again when its node goes";
    return { severity: "warning", message };
  }
  if (!isReplicated(workload) || replicasOf(fleet, workload) !== 1) return undefined;
  const shared = sharedBudgetOf(fleet, workload);
  if (shared !== undefined) {
    const message = `The only replica goes with its node; the PodDisruptionBudget ${shared.name} counts ${shared.others} more of other workloads with it`;
    return { severity: "info", message };
  }
  const message =
    "The only replica goes with its node, and nothing serves until a new one is ready";
  return { severity: "warning", message };
}

interface SharedBudget {
  readonly name: string;
  /** Pods of other workloads that run the same, as one workload a zone does. */
  readonly others: number;
}

/** The budget that counts the workload's pod together with others of the same make. */
function sharedBudgetOf(fleet: AuditedFleet, workload: Workload): SharedBudget | undefined {
  const shared = budgetsOf(fleet, workload).map((budget) => {
    const alike = workloadsOf(fleet, budget).filter(
      (other) => other !== workload && runTheSame(other, workload),
    );
    const others = alike.reduce((sum, other) => sum + (replicasOf(fleet, other) ?? 0), 0);
    return { name: budget.manifest.name, others };
  });
  return shared.find(({ others }) => others > 0);
}

/** A budget may also select all of a namespace: only those of the same containers count. */
function runTheSame(one: Workload, other: Workload): boolean {
  const namesOf = ({ template }: Workload) => template.containers.map(({ name }) => name).join();
  return one.kind === other.kind && namesOf(one) === namesOf(other);
}
