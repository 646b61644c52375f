import { matchesLabelSelector } from "../../core/cluster/label-selector.ts";
import { type AuditedFleet, replicasOf } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const noSpread: Rule = {
  id: "no-spread",
  severity: "warning",
  title: "all replicas may share one node or zone",
  why: "One taken node then takes the whole service. Without a topologySpreadConstraint or pod anti-affinity the scheduler only prefers to spread, and on a small or busy pool it packs. Spot capacity is reclaimed by zone, so replicas that are kept on different nodes and may all stand in one zone are information.",
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
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
`,
  },
  check: checkNoSpread,
};

const nodeKey = "kubernetes.io/hostname";
const zoneKey = "topology.kubernetes.io/zone";

function checkNoSpread(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const replicas = replicasOf(fleet, workload) ?? 0;
    if (!isReplicated(workload) || replicas < 2) return [];
    const keys = spreadKeys(fleet, workload);
    // Whatever is not one node is more than a node: a zone, a rack, a pool.
    if (keys.some((key) => key !== nodeKey)) return [];
    const [place, key] = keys.length === 0 ? ["node", nodeKey] : ["zone", zoneKey];
    const message = `Nothing keeps its ${replicas} replicas from sharing one ${place}`;
    const fix = `Add a topologySpreadConstraint over ${key} that selects these pods`;
    return [{ severity: place === "node" ? "warning" : "info", about: workload, message, fix }];
  });
}

/**
 * Over what the replicas are kept apart. Anti-affinity against other workloads alone keeps no two
 * of them apart; a selector that matches no pod at all has a rule of its own, and is not held
 * against the workload twice.
 */
function spreadKeys(fleet: AuditedFleet, { template, namespace }: Workload): readonly string[] {
  const selectedNear = fleet.selectedIn(namespace);
  return [...template.spread, ...template.apart].flatMap(({ selector, topologyKey }) => {
    const selected = selectedNear(selector);
    if (selected.length === 0) return ["none"];
    const own = selector !== undefined && matchesLabelSelector(selector, template.labels);
    return own ? [topologyKey] : [];
  });
}
