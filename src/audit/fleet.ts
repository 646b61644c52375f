import type { LabelSelector } from "../core/cluster/placement.ts";
import { type GrantedGrace, grantGrace } from "../core/drain-plan/grace-budget.ts";
import {
  fieldsOf,
  listOf,
  textMapOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../core/json/json-field.ts";
import { canRunOn, cloudOf, landingOf } from "./landing.ts";
import { type AuditNode, readNodes, type SeenPlatform } from "./objects/audit-node.ts";
import {
  indexByLabels,
  indexBySelector,
  type SelectedBy,
  type Selecting,
} from "./objects/label-index.ts";
import type { Manifest } from "./objects/manifest.ts";
import { isStatusPort, readSelector } from "./objects/pod-template.ts";
import type { Workload } from "./objects/workload.ts";
import { listWorkloads, type NotJudged } from "./objects/workload-list.ts";
import type { Platform } from "./platform.ts";

/** The input of every rule; a rule reads nothing else. */
export interface AuditedFleet {
  readonly manifests: readonly Manifest[];
  readonly workloads: readonly Workload[];
  /** The workloads of a namespace whose pods a selector selects. */
  readonly selectedIn: (namespace: string) => SelectedBy<Workload>;
  /** Those whose pods may run on a Spot node; see `landingOf` and `canRunOn`. */
  readonly onSpot: ReadonlySet<Workload>;
  readonly notJudged: readonly NotJudged[];
  readonly nodes: readonly AuditNode[];
  readonly budgets: readonly DisruptionBudget[];
  /** The PodDisruptionBudgets of a namespace that select a pod's labels. */
  readonly budgetsIn: (namespace: string) => Selecting<DisruptionBudget>;
  /** The Services of a namespace that select a pod's labels. */
  readonly servicesIn: (namespace: string) => Selecting<ServiceFacts>;
  /** What HorizontalPodAutoscalers may set, by `namespace/Kind/name`. */
  readonly autoscaled: ReadonlyMap<string, ReplicaBounds>;
  readonly problems: readonly string[];
}

export interface ServiceFacts {
  readonly namespace: string;
  readonly selector: LabelSelector;
  /** It is for metrics or health checks alone: nobody's request fails with it. */
  readonly statusOnly: boolean;
}

export interface ReplicaBounds {
  readonly least: number;
  readonly most: number;
}

export interface DisruptionBudget {
  readonly manifest: Manifest;
  readonly selector: LabelSelector | undefined;
  readonly minAvailable: unknown;
  readonly maxUnavailable: unknown;
}

/**
 * Sorts the objects of the input by what the rules ask of them; its nodes, unless others are given.
 */
export function readFleet(
  manifests: readonly Manifest[],
  nodes: readonly AuditNode[] = readNodes(manifests),
): AuditedFleet {
  const list = listWorkloads(manifests);
  const spotNodes = nodes.filter((node) => node.spot);
  const budgets = manifests.flatMap((manifest) => readBudget(manifest) ?? []);
  const services = manifests.flatMap((manifest) => readService(manifest) ?? []);
  return {
    ...list,
    manifests,
    onSpot: new Set(list.workloads.filter((workload) => canLandOn(spotNodes, workload))),
    selectedIn: byNamespace(list.workloads, {
      namespaceOf: (workload) => workload.namespace,
      index: (own) => indexByLabels(own, (workload) => workload.template.labels),
    }),
    nodes,
    budgets,
    budgetsIn: byNamespace(budgets, {
      namespaceOf: (budget) => budget.manifest.namespace,
      index: (own) => indexBySelector(own, (budget) => budget.selector),
    }),
    servicesIn: byNamespace(services, {
      namespaceOf: (service) => service.namespace,
      index: (own) => indexBySelector(own, (service) => service.selector),
    }),
    autoscaled: readAutoscaled(manifests),
  };
}

/** The budgets that select the pods of a workload. */
export function budgetsOf(fleet: AuditedFleet, workload: Workload): readonly DisruptionBudget[] {
  return fleet.budgetsIn(workload.namespace)(workload.template.labels);
}

/** The workloads whose pods a budget selects; DaemonSets are no concern of a drain. */
export function workloadsOf(fleet: AuditedFleet, budget: DisruptionBudget): readonly Workload[] {
  const selected = fleet.selectedIn(budget.manifest.namespace)(budget.selector);
  return selected.filter((workload) => workload.kind !== "DaemonSet");
}

/**
 * Whether requests reach a workload's pods by Services; Unknown where the input has none of them.
 */
export function servedBy(
  fleet: AuditedFleet,
  workload: Workload,
): "Requests" | "Status" | "Unknown" {
  const services = fleet.servicesIn(workload.namespace)(workload.template.labels);
  if (services.length === 0) return "Unknown";
  return services.every(({ statusOnly }) => statusOnly) ? "Status" : "Requests";
}

/** The pods that a workload keeps at least: an autoscaler's lower bound beats `replicas`. */
export function replicasOf(fleet: AuditedFleet, workload: Workload): number | undefined {
  return boundsOf(fleet, workload)?.least ?? workload.replicas;
}

/** The most that it may have. */
export function mostReplicasOf(fleet: AuditedFleet, workload: Workload): number | undefined {
  return boundsOf(fleet, workload)?.most ?? workload.replicas;
}

function boundsOf(
  fleet: AuditedFleet,
  { namespace, kind, name }: Workload,
): ReplicaBounds | undefined {
  return fleet.autoscaled.get(`${namespace}/${kind}/${name}`);
}

/** Whether the workload is judged against a platform: all of them, or those it can be placed on. */
export function canReach(workload: Workload, platform: Platform | SeenPlatform): boolean {
  if (!("nodes" in platform)) {
    const cloud = platform.assumedCloud === undefined ? undefined : cloudOf(workload.template);
    return cloud === undefined || cloud === platform.assumedCloud;
  }
  return platform.nodes.some((node) => canRunOn(workload.template, node));
}

/** What the kubelet of a platform gives a workload's pods. */
export function graceOn(platform: Platform, workload: Workload): GrantedGrace {
  const { wantedGraceSeconds: wantedSeconds, priority: podPriority } = workload;
  return grantGrace({ wantedSeconds, podPriority, groups: platform.groups });
}

/** Where no Spot node is known, the workload's own selectors decide. */
function canLandOn(spotNodes: readonly AuditNode[], { template }: Workload): boolean {
  if (landingOf(template) === "Never") return false;
  return spotNodes.length === 0 || spotNodes.some((node) => canRunOn(template, node));
}

/** One index a namespace, made when somebody first asks for it. */
function byNamespace<Item, Index>(
  items: readonly Item[],
  how: {
    readonly namespaceOf: (item: Item) => string;
    readonly index: (items: readonly Item[]) => Index;
  },
): (namespace: string) => Index {
  const groups = Map.groupBy(items, how.namespaceOf);
  const made = new Map<string, Index>();
  return (namespace) => {
    const found = made.get(namespace) ?? how.index(groups.get(namespace) ?? []);
    made.set(namespace, found);
    return found;
  };
}

function readBudget(manifest: Manifest): DisruptionBudget | undefined {
  if (manifest.kind !== "PodDisruptionBudget" || manifest.group !== "policy") return undefined;
  const spec = fieldsOf(valueAt(manifest.json, ["spec"]));
  return {
    manifest,
    selector: selectsNothing(manifest) ? undefined : readSelector(spec.selector),
    minAvailable: spec.minAvailable,
    maxUnavailable: spec.maxUnavailable,
  };
}

/** An empty selector selected no pod in policy/v1beta1; in policy/v1 it selects all. */
function selectsNothing({ apiVersion, json }: Manifest): boolean {
  const { matchLabels, matchExpressions } = fieldsOf(valueAt(json, ["spec", "selector"]));
  const isEmpty = Object.keys(fieldsOf(matchLabels)).length + listOf(matchExpressions).length === 0;
  return isEmpty && apiVersion === "policy/v1beta1";
}

/** A Service without a selector is left out: somebody else says where it leads. */
function readService(manifest: Manifest): ServiceFacts | undefined {
  if (manifest.kind !== "Service" || manifest.group !== "") return undefined;
  const matchLabels = textMapOf(valueAt(manifest.json, ["spec", "selector"]));
  if (Object.keys(matchLabels).length === 0) return undefined;
  const ports = listOf(valueAt(manifest.json, ["spec", "ports"])).map(fieldsOf);
  const statusOnly = ports.length > 0 && ports.every(isStatusPort);
  return { namespace: manifest.namespace, selector: { matchLabels }, statusOnly };
}

/** Of a HorizontalPodAutoscaler, or of KEDA's ScaledObject, which makes one. */
function readBounds({ kind, group, json }: Manifest): ReplicaBounds | undefined {
  const spec = fieldsOf(valueAt(json, ["spec"]));
  if (kind === "HorizontalPodAutoscaler" && group === "autoscaling") {
    const least = wholeNumberOf(spec.minReplicas) ?? 1;
    return { least, most: wholeNumberOf(spec.maxReplicas) ?? least };
  }
  if (kind !== "ScaledObject" || group !== "keda.sh") return undefined;
  const least = wholeNumberOf(spec.minReplicaCount) ?? 0;
  return { least, most: wholeNumberOf(spec.maxReplicaCount) ?? 100 };
}

function readAutoscaled(manifests: readonly Manifest[]): AuditedFleet["autoscaled"] {
  const found = new Map<string, ReplicaBounds>();
  for (const manifest of manifests) {
    const bounds = readBounds(manifest);
    if (bounds === undefined) continue;
    const target = fieldsOf(valueAt(manifest.json, ["spec", "scaleTargetRef"]));
    const kind = textOf(target.kind) ?? "Deployment";
    found.set(`${manifest.namespace}/${kind}/${textOf(target.name)}`, bounds);
  }
  return found;
}
