import { type LabelSelector, matchesLabelSelector } from "../../core/cluster/label-selector.ts";
import type { AuditedFleet } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const spreadSelectsNothing: Rule = {
  id: "spread-selects-nothing",
  severity: "warning",
  title: "a spread constraint or an anti-affinity selects no pod",
  why: "A topologySpreadConstraint counts the pods that its labelSelector matches; where it does not match the pod's own labels (a label was renamed in one place) it counts nothing and all replicas may share a node. The same goes for an anti-affinity that matches no pod of the namespace.",
  fix: "Make the labelSelector match the labels of the pod template.",
  whenNotToUse: "The selector means pods that the input does not hold.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app.kubernetes.io/name: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app.kubernetes.io/name: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app.kubernetes.io/name: web}}
`,
  },
  check: checkSpreadSelectsNothing,
};

function checkSpreadSelectsNothing(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const kinds = [
      ...(spreadMissesItself(workload) ? ["topologySpreadConstraint"] : []),
      ...(antiAffinityMissesAll(fleet, workload) ? ["pod anti-affinity"] : []),
    ];
    return kinds.map((kind) => ({
      severity: "warning",
      about: workload,
      message: `The labelSelector of a ${kind} matches no pod, so it keeps nothing apart`,
      fix: "Make the labelSelector match the labels of the pod template",
    }));
  });
}

function spreadMissesItself({ template }: Workload): boolean {
  return template.spread.some(({ selector }) => !selects(selector, template.labels));
}

/** Anti-affinity may well mean the pods of others, so every workload of the namespace counts. */
function antiAffinityMissesAll(fleet: AuditedFleet, workload: Workload): boolean {
  const selected = fleet.selectedIn(workload.namespace);
  return workload.template.apart.some(
    (term) => !term.otherNamespaces && selected(term.selector).length === 0,
  );
}

/** A selector that is not there selects nothing. */
function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  return selector !== undefined && matchesLabelSelector(selector, labels);
}
