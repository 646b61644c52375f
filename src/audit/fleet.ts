import { type GrantedGrace, grantGrace } from "../core/grace-budget.ts";
import type { LabelSelector } from "../core/pod.ts";
import { type AuditNode, readNodes, type SeenPlatform } from "./audit-node.ts";
import { fieldsOf, textMapOf, textOf, valueAt, wholeNumberOf } from "./json-field.ts";
import { matchesSelector, readSelector } from "./label-match.ts";
import { canRunOn, landingOf } from "./landing.ts";
import type { Manifest } from "./manifest.ts";
import type { Platform } from "./platform.ts";
import type { Workload } from "./workload.ts";
import { listWorkloads, type NotJudged } from "./workload-list.ts";

/** Everything that the rules look at; a rule reads nothing else. */
export interface Fleet {
  readonly manifests: readonly Manifest[];
  readonly workloads: readonly Workload[];
  readonly workloadsIn: ReadonlyMap<string, readonly Workload[]>;
  /** Those whose pods may ever stand on a Spot node; see `landingOf` and `canRunOn`. */
  readonly onSpot: ReadonlySet<Workload>;
  readonly notJudged: readonly NotJudged[];
  readonly nodes: readonly AuditNode[];
  /** PodDisruptionBudgets by namespace. */
  readonly budgets: ReadonlyMap<string, readonly DisruptionBudget[]>;
  /** Selectors of Services by namespace; Services without one are left out. */
  readonly services: ReadonlyMap<string, readonly Readonly<Record<string, string>>[]>;
  /** The least replicas that a HorizontalPodAutoscaler may set, by `namespace/Kind/name`. */
  readonly autoscaled: ReadonlyMap<string, number>;
  readonly problems: readonly string[];
}

export interface DisruptionBudget {
  readonly manifest: Manifest;
  readonly selector: LabelSelector | undefined;
  readonly minAvailable: unknown;
  readonly maxUnavailable: unknown;
}

/** Sorts the objects of the input by what the rules ask of them. */
export function readFleet(manifests: readonly Manifest[]): Fleet {
  const list = listWorkloads(manifests);
  const nodes = readNodes(manifests);
  const spotNodes = nodes.filter((node) => node.spot);
  return {
    ...list,
    manifests,
    onSpot: new Set(list.workloads.filter((workload) => canLandOn(spotNodes, workload))),
    workloadsIn: Map.groupBy(list.workloads, (workload) => workload.namespace),
    nodes,
    budgets: byNamespace(manifests, readBudget),
    services: byNamespace(manifests, readServiceSelector),
    autoscaled: readAutoscaled(manifests),
  };
}

/** The budgets that select the pods of a workload. */
export function budgetsOf(fleet: Fleet, workload: Workload): readonly DisruptionBudget[] {
  const inNamespace = fleet.budgets.get(workload.namespace) ?? [];
  return inNamespace.filter((budget) => selects(budget.selector, workload));
}

/** The workloads whose pods a budget selects; DaemonSets are no concern of a drain. */
export function workloadsOf(fleet: Fleet, budget: DisruptionBudget): readonly Workload[] {
  const inNamespace = fleet.workloadsIn.get(budget.manifest.namespace) ?? [];
  return inNamespace.filter(
    (workload) => workload.kind !== "DaemonSet" && selects(budget.selector, workload),
  );
}

export function isServed(fleet: Fleet, workload: Workload): boolean {
  const selectors = fleet.services.get(workload.namespace) ?? [];
  return selectors.some((matchLabels) =>
    matchesSelector({ matchLabels }, workload.template.labels),
  );
}

/** The pods that a workload keeps at least: an autoscaler's lower bound beats `replicas`. */
export function replicasOf(fleet: Fleet, workload: Workload): number | undefined {
  const key = `${workload.namespace}/${workload.kind}/${workload.name}`;
  return fleet.autoscaled.get(key) ?? workload.replicas;
}

/** Whether the workload is judged against a platform: all of them, or those it can be placed on. */
export function canReach(workload: Workload, platform: Platform | SeenPlatform): boolean {
  if (!("nodes" in platform)) return true;
  return platform.nodes.some((node) => canRunOn(workload.template, node));
}

/** What the kubelet of a platform gives a workload's pods. */
export function graceOn(platform: Platform, workload: Workload): GrantedGrace {
  const { wantedGraceSeconds: wantedSeconds, priority: podPriority } = workload;
  return grantGrace({ wantedSeconds, podPriority, groups: platform.groups });
}

/** Where no Spot node is known, the workload's own word decides. */
function canLandOn(spotNodes: readonly AuditNode[], { template }: Workload): boolean {
  if (landingOf(template) === "Never") return false;
  return spotNodes.length === 0 || spotNodes.some((node) => canRunOn(template, node));
}

function selects(selector: LabelSelector | undefined, workload: Workload): boolean {
  return selector !== undefined && matchesSelector(selector, workload.template.labels);
}

function byNamespace<Item>(
  manifests: readonly Manifest[],
  read: (manifest: Manifest) => Item | undefined,
): ReadonlyMap<string, readonly Item[]> {
  const found = new Map<string, Item[]>();
  for (const manifest of manifests) {
    const item = read(manifest);
    if (item === undefined) continue;
    const items = found.get(manifest.namespace) ?? [];
    items.push(item);
    found.set(manifest.namespace, items);
  }
  return found;
}

function readBudget(manifest: Manifest): DisruptionBudget | undefined {
  if (manifest.kind !== "PodDisruptionBudget" || manifest.group !== "policy") return undefined;
  const spec = fieldsOf(valueAt(manifest.json, ["spec"]));
  return {
    manifest,
    selector: readSelector(spec.selector),
    minAvailable: spec.minAvailable,
    maxUnavailable: spec.maxUnavailable,
  };
}

function readServiceSelector(manifest: Manifest): Readonly<Record<string, string>> | undefined {
  if (manifest.kind !== "Service" || manifest.group !== "") return undefined;
  const selector = textMapOf(valueAt(manifest.json, ["spec", "selector"]));
  return Object.keys(selector).length === 0 ? undefined : selector;
}

function readAutoscaled(manifests: readonly Manifest[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const manifest of manifests) {
    if (manifest.kind !== "HorizontalPodAutoscaler" || manifest.group !== "autoscaling") continue;
    const spec = fieldsOf(valueAt(manifest.json, ["spec"]));
    const target = fieldsOf(spec.scaleTargetRef);
    const key = `${manifest.namespace}/${textOf(target.kind)}/${textOf(target.name)}`;
    found.set(key, wholeNumberOf(spec.minReplicas) ?? 1);
  }
  return found;
}
