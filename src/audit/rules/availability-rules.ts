/** Whether a workload stays available while one of its nodes leaves. */
import { type LabelSelector, matchesLabelSelector } from "../../core/cluster/pod.ts";
import { type AuditedFleet, budgetsOf, replicasOf, selectedBy, servedBy } from "../fleet.ts";
import { identityOf, type Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../report.ts";

export const singleReplica: Rule = {
  id: "single-replica",
  severity: "warning",
  title: "the workload has only one pod",
  why: "When its node leaves, the service is down until a new pod is scheduled, pulled and ready; on a Spot node that can happen at any time. A pod without a controller is not recreated at all. If a PodDisruptionBudget counts the pod together with those of other workloads of the same kind and containers, as with one workload per zone, the finding is information.",
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
    const field = ["spec", "replicas"];
    return found === undefined ? [] : [{ ...found, about: workload, field, fix }];
  });
}

function judge(
  fleet: AuditedFleet,
  workload: Workload,
): Pick<Remark, "severity" | "message"> | undefined {
  if (workload.kind === "Pod") {
    if (workload.template.restartPolicy !== "Always") return undefined;
    const message = "No controller recreates this pod when its node leaves";
    return { severity: "warning", message };
  }
  if (!isReplicated(workload) || replicasOf(fleet, workload) !== 1) return undefined;
  const shared = sharedBudgetOf(fleet, workload);
  if (shared !== undefined) {
    const message = `The only replica is lost with its node; the PodDisruptionBudget ${shared.name} also counts ${shared.others} more of other workloads`;
    return { severity: "info", message };
  }
  const message =
    "The only replica is lost with its node, and nothing serves until a new one is ready";
  return { severity: "warning", message };
}

interface SharedBudget {
  readonly name: string;
  /** Pods of other workloads with the same containers, such as one workload per zone. */
  readonly others: number;
}

/** The budget that counts the workload's pods together with others that run the same containers. */
function sharedBudgetOf(fleet: AuditedFleet, workload: Workload): SharedBudget | undefined {
  const shared = budgetsOf(fleet, workload).map((budget) => {
    const alike = selectedBy(fleet, budget).filter((other) => runTheSame(other, workload));
    // A copy of an object, such as the base of what is rendered, is no other one.
    const distinct = new Map(alike.map((other) => [identityOf(other), other]));
    distinct.delete(identityOf(workload));
    const others = distinct
      .values()
      .reduce((sum, other) => sum + (replicasOf(fleet, other) ?? 0), 0);
    return { name: budget.manifest.name, others };
  });
  return shared.find(({ others }) => others > 0);
}

/** A budget may also select a whole namespace: only pods with the same containers count. */
function runTheSame(one: Workload, other: Workload): boolean {
  const namesOf = ({ template }: Workload) => template.containers.map(({ name }) => name).join();
  return one.kind === other.kind && namesOf(one) === namesOf(other);
}

export const noSpread: Rule = {
  id: "no-spread",
  severity: "warning",
  title: "all replicas may share one node or zone",
  why: "One interrupted node can then take down the whole service. Without a topologySpreadConstraint or pod anti-affinity, the scheduler only prefers to spread, and packs pods in a small or busy pool. Spot capacity is reclaimed by zone, so replicas that are kept on different nodes but may all share one zone are information.",
  fix: "Add a topologySpreadConstraint over kubernetes.io/hostname (and over the zone), or pod anti-affinity.",
  whenNotToUse:
    "The replicas must run close together, or the cluster's own default constraints are DoNotSchedule.",
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
    // Any other topology key spans more than one node: a zone, a rack, a pool.
    if (keys.some((key) => key !== nodeKey)) return [];
    const [place, key] = keys.length === 0 ? ["node", nodeKey] : ["zone", zoneKey];
    const message = `Nothing keeps its ${replicas} replicas from sharing one ${place}`;
    const fix = `Add a topologySpreadConstraint over ${key} that selects these pods`;
    return [{ severity: place === "node" ? "warning" : "info", about: workload, message, fix }];
  });
}

/**
 * The topology over which the replicas are spread. Anti-affinity to other workloads alone does not
 * spread them; a selector that matches no pod at all has its own rule, and is not reported twice.
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

export const spreadSelectsNothing: Rule = {
  id: "spread-selects-nothing",
  severity: "warning",
  title: "a spread constraint or an anti-affinity selects no pod",
  why: "A topologySpreadConstraint counts the pods that its labelSelector matches; if it does not match the pod's own labels (because a label was renamed in one place), it counts nothing and all replicas may share a node. The same applies to an anti-affinity that matches no pod of the namespace.",
  fix: "Make the labelSelector match the labels of the pod template.",
  whenNotToUse: "The selector is meant for pods that the input does not contain.",
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

/** Anti-affinity may refer to other workloads' pods, so every workload of the namespace counts. */
function antiAffinityMissesAll(fleet: AuditedFleet, workload: Workload): boolean {
  const selected = fleet.selectedIn(workload.namespace);
  return workload.template.apart.some(
    (term) => !term.otherNamespaces && selected(term.selector).length === 0,
  );
}

/** A missing selector selects nothing. */
function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  return selector !== undefined && matchesLabelSelector(selector, labels);
}

export const readinessMissing: Rule = {
  id: "readiness-missing",
  severity: "warning",
  title: "a served workload has no readiness probe",
  why: "Without a readiness probe, a replacement counts as ready as soon as its process exists: traffic arrives before it listens, and a PodDisruptionBudget allows the next eviction too early. On Spot nodes, pods are replaced all the time. The rule applies if a Service in the input selects the pods or, if none does, a container names a port; ports named for metrics or health do not count, and gateways that Istio injects get their probe from Istio.",
  fix: "Add a readinessProbe to a container that serves.",
  whenNotToUse:
    "Nothing waits for the pods: workers that fetch their own work, or a port that is for metrics and not named so.",
  bad: {
    yaml: `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  good: {
    yaml: `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        readinessProbe: {httpGet: {path: /ready, port: 8080}}
`,
  },
  check: checkReadinessMissing,
};

function checkReadinessMissing(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const { containers } = workload.template;
    if (!isReplicated(workload) || containers.some((one) => one.hasReadinessProbe)) return [];
    if (isIstioGateway(workload)) return [];
    const served = servedBy(fleet, workload);
    if (served === "Status") return [];
    if (served === "Unknown" && !containers.some((one) => one.hasPorts)) return [];
    const how = served === "Requests" ? "A Service selects its pods" : "It names ports";
    const message = `${how}, and no container has a readiness probe`;
    const fix = "Add a readinessProbe to the container that serves";
    return [{ severity: "warning", about: workload, message, fix }];
  });
}

/**
 * Istio's injection replaces the whole container of a gateway, including its readiness probe.
 * Source: istio gateway-injection-template.yaml.
 */
function isIstioGateway({ template }: Workload): boolean {
  const injected = template.annotations["inject.istio.io/templates"] ?? "";
  return injected.split(",").some((name) => name.trim() === "gateway");
}
