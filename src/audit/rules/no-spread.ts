import { type Fleet, replicasOf } from "../fleet.ts";
import { matchesSelector } from "../label-match.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";
import type { Workload } from "../workload.ts";

export const noSpread: Rule = {
  id: "no-spread",
  severity: "warning",
  title: "all replicas may share one node",
  why: "One taken node then takes the whole service. Without a topologySpreadConstraint or pod anti-affinity the scheduler only prefers to spread, and on a small or busy pool it packs.",
  fix: "Add a topologySpreadConstraint over kubernetes.io/hostname (and over the zone), or pod anti-affinity.",
  whenNotToUse:
    "The replicas must stand close together, or the cluster's own default constraints are DoNotSchedule.",
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
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
`,
  },
  check: checkNoSpread,
};

function checkNoSpread(fleet: Fleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const replicas = replicasOf(fleet, workload) ?? 0;
    if (!isReplicated(workload) || replicas < 2 || isSpread(fleet, workload)) return [];
    const message = `Nothing keeps its ${replicas} replicas from sharing one node`;
    const fix =
      "Add a topologySpreadConstraint over kubernetes.io/hostname that selects these pods";
    return [{ severity: "warning", about: workload, message, fix }];
  });
}

/**
 * Anti-affinity against other workloads alone keeps no two of its own pods apart; a selector that
 * matches no pod at all has a rule of its own.
 */
function isSpread(fleet: Fleet, { template, namespace }: Workload): boolean {
  if (template.spreadSelectors.length > 0) return true;
  const selectedNear = fleet.selectedIn(namespace);
  return template.apart.some(
    ({ selector }) =>
      selector !== undefined &&
      (matchesSelector(selector, template.labels) || selectedNear(selector).length === 0),
  );
}
