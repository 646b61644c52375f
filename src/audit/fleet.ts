import { clouds } from "../cloud/clouds.ts";
import { spotLabels } from "../cloud/facts/cloud-marks.ts";
import {
  type LabelRequirement,
  type LabelSelector,
  meetsRequirement,
  type Toleration,
} from "../core/cluster/pod.ts";
import { type GrantedGrace, grantGrace } from "../core/drain-plan/drain-order.ts";
import { fieldsOf, listOf, textMapOf, valueAt } from "../core/json/json-field.ts";
import { type AuditNode, type NodePlatform, readNodes } from "./objects/audit-node.ts";
import { type LocalStorage, readLocalStorage } from "./objects/local-storage.ts";
import type { Manifest } from "./objects/manifest.ts";
import { isStatusPort, type PodTemplate, readSelector } from "./objects/pod-template.ts";
import { type ReplicaBounds, readAutoscaled } from "./objects/replica-bounds.ts";
import { namesSpot, type SpotScope } from "./objects/spot-scope.ts";
import type { Workload } from "./objects/workload.ts";
import {
  indexByLabels,
  indexBySelector,
  listWorkloads,
  type NotJudged,
  type OtherOwner,
  type SelectedBy,
  type Selecting,
} from "./objects/workload-list.ts";
import type { Platform } from "./platform.ts";

/** Whether a workload's pods can be placed on Spot nodes: only there, there as well, or never. */
export type Landing = "Only" | "May" | "Never";

/**
 * What the pod's own node selector and required affinity say, without any node at hand. Only the
 * labels that mark Spot nodes count; all other requirements might be met. Taints do not count
 * either: a manifest does not show what admission adds, and GKE's Spot pools have none.
 */
export function landingOf(template: PodTemplate): Landing {
  if (isTiedElsewhere(template)) return "Never";
  const named = Object.keys(spotLabels).filter((key) => namesLabel(template, key));
  if (named.length === 0) return "May";
  const [, ...spot] = markings(named, (key) => spotLabels[key]?.spot ?? []);
  if (!spot.some((marks) => fits(template, marks))) return "Never";
  const stable = markings(named, (key) => [notSpot(key)]);
  return stable.some((marks) => fits(template, marks)) ? "May" : "Only";
}

/**
 * All combinations of these labels that a node may have, the node without any first: more than one
 * tool may mark the same node, as GKE itself does with two labels.
 */
function markings(
  keys: readonly string[],
  wordsOf: (key: string) => readonly string[],
): readonly Readonly<Record<string, string>>[] {
  let made: readonly Readonly<Record<string, string>>[] = [{}];
  for (const key of keys) {
    const marked = made.flatMap((marks) => wordsOf(key).map((word) => ({ ...marks, [key]: word })));
    made = [...made, ...marked];
  }
  return made;
}

/** The cloud whose labels the pods require of their node; undefined if they require none. */
function cloudOf({ nodeSelector, nodeTerms }: PodTemplate): string | undefined {
  const terms = (nodeTerms ?? []).map((term) =>
    term.filter(({ operator }) => operator === "In" || operator === "Exists"),
  );
  return clouds.find(({ audit: { ownLabels } }) => {
    if (Object.keys(nodeSelector).some((key) => ownLabels.test(key))) return true;
    return terms.length > 0 && terms.every((term) => term.some(({ key }) => ownLabels.test(key)));
  })?.facts.kubernetes;
}

/** Whether the scheduler could place the pods on this node: selector, affinity and taints. */
function canRunOn(template: PodTemplate, node: AuditNode): boolean {
  const selected = Object.entries(template.nodeSelector).every(
    ([key, value]) => node.labels[key] === value,
  );
  if (!selected) return false;
  const terms = template.nodeTerms;
  const placed =
    terms === undefined ||
    terms.some(
      (term) => term.length > 0 && term.every((one) => meetsRequirement(node.labels, one)),
    );
  return placed && node.taints.every((taint) => isTolerated(taint, template.tolerations));
}

/** Control planes and Fargate are not Spot nodes, whatever their other labels say. */
function isTiedElsewhere({ nodeSelector, nodeTerms }: PodTemplate): boolean {
  const selected = Object.entries(nodeSelector).some(([key, value]) => isElsewhere(key, [value]));
  const terms = nodeTerms ?? [];
  return (
    selected ||
    (terms.length > 0 &&
      terms.every((term) =>
        term.some(
          ({ key, operator, values }) =>
            (operator === "Exists" && isElsewhere(key, undefined)) ||
            (operator === "In" && isElsewhere(key, values)),
        ),
      ))
  );
}

function isElsewhere(key: string, values: readonly string[] | undefined): boolean {
  if (/^node-role\.kubernetes\.io\/(control-plane|master)$/.test(key)) return true;
  return key === "eks.amazonaws.com/compute-type" && values?.join() === "fargate";
}

function namesLabel(template: PodTemplate, key: string): boolean {
  if (Object.hasOwn(template.nodeSelector, key)) return true;
  return (template.nodeTerms ?? []).some((term) => term.some((one) => one.key === key));
}

/** Whether a node with exactly these marks could match. */
function fits(template: PodTemplate, marks: Readonly<Record<string, string>>): boolean {
  const selected = Object.entries(template.nodeSelector).every(
    ([key, value]) => !Object.hasOwn(spotLabels, key) || marks[key] === value,
  );
  const terms = template.nodeTerms;
  return selected && (terms === undefined || terms.some((term) => termFits(term, marks)));
}

function termFits(
  term: readonly LabelRequirement[],
  marks: Readonly<Record<string, string>>,
): boolean {
  return term.every((one) => !Object.hasOwn(spotLabels, one.key) || meetsRequirement(marks, one));
}

/** The value of the same label on a node that is not Spot, if there is one. */
function notSpot(key: string): string {
  return spotLabels[key]?.stable ?? "normal";
}

/** Taints that come and go with a node's health or a drain do not say who may run there. */
const passing =
  /^(node\.kubernetes\.io\/|lastcall\.dev\/|ToBeDeleted|DeletionCandidate|karpenter\.sh\/disrupt)/;

function isTolerated(
  taint: AuditNode["taints"][number],
  tolerations: readonly Toleration[],
): boolean {
  if (taint.effect === "PreferNoSchedule" || passing.test(taint.key)) return true;
  return tolerations.some((one) => {
    if (one.effect !== undefined && one.effect !== taint.effect) return false;
    if (one.key === undefined) return one.operator === "Exists";
    if (one.key !== taint.key) return false;
    return one.operator === "Exists" || (one.value ?? "") === (taint.value ?? "");
  });
}

/** The input of every rule; rules read nothing else. */
export interface AuditedFleet {
  readonly manifests: readonly Manifest[];
  readonly workloads: readonly Workload[];
  /** The workloads of a namespace whose pods a selector selects. */
  readonly selectedIn: (namespace: string) => SelectedBy<Workload>;
  /** The owners of pods of a namespace that no workload shows, by a selector of the pods. */
  readonly otherOwnersIn: (namespace: string) => SelectedBy<OtherOwner>;
  /** Those whose pods may run on a Spot node, in the scope; see `landingOf` and `canRunOn`. */
  readonly onSpot: ReadonlySet<Workload>;
  readonly scope: SpotScope;
  readonly notJudged: readonly NotJudged[];
  readonly nodes: readonly AuditNode[];
  readonly budgets: readonly DisruptionBudget[];
  /** The PodDisruptionBudgets of a namespace that select a pod's labels. */
  readonly budgetsIn: (namespace: string) => Selecting<DisruptionBudget>;
  /** The Services of a namespace that select a pod's labels. */
  readonly servicesIn: (namespace: string) => Selecting<ServiceFacts>;
  /** The bounds that HorizontalPodAutoscalers set, by `namespace/Kind/name`. */
  readonly autoscaled: ReadonlyMap<string, ReplicaBounds>;
  readonly localStorage: LocalStorage;
  readonly problems: readonly string[];
}

export interface ServiceFacts {
  readonly namespace: string;
  readonly selector: LabelSelector;
  /** It serves only metrics or health checks: no user's request fails with it. */
  readonly statusOnly: boolean;
}

export interface DisruptionBudget {
  readonly manifest: Manifest;
  readonly selector: LabelSelector | undefined;
  /** A whole number or a percentage, unless the budget is faulty; undefined: not set, or null. */
  readonly minAvailable: unknown;
  readonly maxUnavailable: unknown;
}

/** Indexes the objects of the input for the rules, with its nodes unless others are given. */
export function readFleet(
  manifests: readonly Manifest[],
  nodes: readonly AuditNode[] = readNodes(manifests),
): AuditedFleet {
  const { otherOwners, ...list } = listWorkloads(manifests);
  const spotNodes = nodes.filter((node) => node.spot);
  const budgets = manifests.flatMap((manifest) => readBudget(manifest) ?? []);
  const services = manifests.flatMap((manifest) => readService(manifest) ?? []);
  return {
    ...list,
    manifests,
    onSpot: new Set(list.workloads.filter((workload) => canLandOn(spotNodes, workload))),
    scope: "Possible",
    selectedIn: byNamespace(list.workloads, {
      namespaceOf: (workload) => workload.namespace,
      index: (own) => indexByLabels(own, (workload) => workload.template.labels),
    }),
    otherOwnersIn: byNamespace(otherOwners, {
      namespaceOf: (owner) => owner.namespace,
      index: (own) => indexByLabels(own, (owner) => owner.labels),
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
    localStorage: readLocalStorage(manifests),
  };
}

/** The fleet with only those workloads of `onSpot` that are in the scope. */
export function inScope(fleet: AuditedFleet, scope: SpotScope): AuditedFleet {
  if (scope === "Possible") return fleet;
  const onSpot = new Set([...fleet.onSpot].filter(({ template }) => namesSpot(template)));
  return { ...fleet, scope, onSpot };
}

/**
 * Whether a load balancer's object is checked: which pods are behind it does not always show, so
 * one checked workload in its namespace is enough.
 */
export function isServed({ scope, onSpot }: AuditedFleet, { namespace }: Manifest): boolean {
  return scope === "Possible" || [...onSpot].some((workload) => workload.namespace === namespace);
}

/** The budgets that select the pods of a workload. */
export function budgetsOf(fleet: AuditedFleet, workload: Workload): readonly DisruptionBudget[] {
  return fleet.budgetsIn(workload.namespace)(workload.template.labels);
}

/** The workloads whose pods a budget selects. */
export function selectedBy(fleet: AuditedFleet, budget: DisruptionBudget): readonly Workload[] {
  return fleet.selectedIn(budget.manifest.namespace)(budget.selector);
}

/**
 * Whether requests reach a workload's pods through Services; Unknown if the input has no Services.
 */
export function servedBy(
  fleet: AuditedFleet,
  workload: Workload,
): "Requests" | "Status" | "Unknown" {
  const services = fleet.servicesIn(workload.namespace)(workload.template.labels);
  if (services.length === 0) return "Unknown";
  return services.every(({ statusOnly }) => statusOnly) ? "Status" : "Requests";
}

/**
 * The least number of pods of a workload: an autoscaler's minimum takes precedence over `replicas`.
 */
export function replicasOf(fleet: AuditedFleet, workload: Workload): number | undefined {
  return boundsOf(fleet, workload)?.least ?? workload.replicas;
}

/** The greatest number of its pods. */
export function mostReplicasOf(fleet: AuditedFleet, workload: Workload): number | undefined {
  return boundsOf(fleet, workload)?.most ?? workload.replicas;
}

/**
 * A HorizontalPodAutoscaler with a minimum leaves a workload with 0 replicas as it is. Source:
 * kubernetes pkg/controller/podautoscaler/horizontal.go, ScalingDisabled.
 */
function boundsOf(
  fleet: AuditedFleet,
  { namespace, kind, name, replicas, rollout }: Workload,
): Pick<ReplicaBounds, "least" | "most"> | undefined {
  const scaled = rollout === undefined ? `${kind}/${name}` : `Rollout/${rollout}`;
  const bounds = fleet.autoscaled.get(`${namespace}/${scaled}`);
  const isOff = replicas === 0 && bounds?.fromZero === false && bounds.least > 0;
  return isOff ? { least: 0, most: 0 } : bounds;
}

/**
 * Whether the workload is checked against a platform: against all, or those that it can be placed
 * on.
 */
export function canReach(workload: Workload, platform: Platform | NodePlatform): boolean {
  if (!("nodes" in platform)) {
    const cloud = platform.assumedCloud === undefined ? undefined : cloudOf(workload.template);
    return cloud === undefined || cloud === platform.assumedCloud;
  }
  return platform.nodes.some((node) => canRunOn(workload.template, node));
}

/** The grace that the kubelet of a platform gives a workload's pods. */
export function graceOn(platform: Platform, workload: Workload): GrantedGrace {
  const { wantedGraceSeconds: wantedSeconds, priority: podPriority } = workload;
  return grantGrace({ wantedSeconds, podPriority, groups: platform.groups });
}

/** Without a known Spot node, the workload's own selectors decide. */
function canLandOn(spotNodes: readonly AuditNode[], { template }: Workload): boolean {
  if (landingOf(template) === "Never") return false;
  return spotNodes.length === 0 || spotNodes.some((node) => canRunOn(template, node));
}

/** One index per namespace, created on first use. */
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
    minAvailable: spec.minAvailable ?? undefined,
    maxUnavailable: spec.maxUnavailable ?? undefined,
  };
}

/** An empty selector selected no pod in policy/v1beta1; in policy/v1 it selects all. */
function selectsNothing({ apiVersion, json }: Manifest): boolean {
  const { matchLabels, matchExpressions } = fieldsOf(valueAt(json, ["spec", "selector"]));
  const isEmpty = Object.keys(fieldsOf(matchLabels)).length + listOf(matchExpressions).length === 0;
  return isEmpty && apiVersion === "policy/v1beta1";
}

/** A Service without a selector is left out: its endpoints are managed elsewhere. */
function readService(manifest: Manifest): ServiceFacts | undefined {
  if (manifest.kind !== "Service" || manifest.group !== "") return undefined;
  const matchLabels = textMapOf(valueAt(manifest.json, ["spec", "selector"]));
  if (Object.keys(matchLabels).length === 0) return undefined;
  const ports = listOf(valueAt(manifest.json, ["spec", "ports"])).map(fieldsOf);
  const statusOnly = ports.length > 0 && ports.every(isStatusPort);
  return { namespace: manifest.namespace, selector: { matchLabels }, statusOnly };
}
