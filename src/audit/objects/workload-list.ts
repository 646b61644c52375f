import { type LabelSelector, type Labels, matchesLabelSelector } from "../../core/cluster/pod.ts";
import {
  fieldsOf,
  listOf,
  nameOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import { groupIn, type Manifest } from "./manifest.ts";
import {
  isCustomResource,
  keyOf,
  readPriorityClasses,
  readWorkload,
  usualGroupOf,
  type Workload,
  workloadKindOf,
} from "./workload.ts";

/** An object whose pods do not show in the input. */
export interface NotJudged {
  readonly manifest: Manifest;
  readonly reason: "CustomResource" | "StaticPod";
}

/** The owner of a pod that no workload shows: of a finished or static pod, or a pod itself. */
export interface OtherOwner extends Owner {
  readonly namespace: string;
  /** Of the pod. */
  readonly labels: Labels;
}

export interface WorkloadList {
  readonly workloads: readonly Workload[];
  readonly otherOwners: readonly OtherOwner[];
  readonly notJudged: readonly NotJudged[];
  /** One sentence for each object that could not be read. */
  readonly problems: readonly string[];
}

interface Owner {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
}

/**
 * Finds the workloads of the input. An object whose owner is a workload of the input is not listed
 * again. Pods whose owner is none (a recording of only nodes and pods, or an operator's resource
 * without a pod template) count as that owner's.
 */
export function listWorkloads(manifests: readonly Manifest[]): WorkloadList {
  const classes = readPriorityClasses(manifests);
  const problems: string[] = [...classes.problems];
  const notJudged: NotJudged[] = [];
  const workloads: Workload[] = [];
  const otherOwners: OtherOwner[] = [];
  const orphans = new Map<string, Orphan[]>();
  const judged = new Set(manifests.filter(hidesItsPods).map(objectKey));
  const owners = ownersOfWorkloads(manifests);
  const pods = new Map(
    manifests.filter(({ kind }) => kind === "Pod").map((one) => [objectKey(one), one]),
  );
  for (const manifest of manifests) {
    const isShown = owners.has(objectKey(manifest)) || judged.has(referredKey(manifest));
    if (isCustomResource(manifest) && !isShown) {
      notJudged.push({ manifest, reason: "CustomResource" });
    }
    if (workloadKindOf(manifest) === undefined) continue;
    const owner = ownerOf(manifest);
    const isOther = owner?.kind === "Node" || owner?.kind === "Pod" || isOver(manifest);
    if (owner !== undefined && isOther) {
      otherOwners.push({ namespace: manifest.namespace, labels: manifest.labels, ...owner });
    }
    if (isOver(manifest)) continue;
    if (owner?.kind === "Node") notJudged.push({ manifest, reason: "StaticPod" });
    if (owner?.kind === "Node") continue;
    const root = rootAmong(manifest, { pods, owners, judged });
    if (ownerKeys(manifest).some((key) => judged.has(key))) continue;
    const read = readWorkload(manifest, classes);
    if (read.kind === "Problem") problems.push(read.problem);
    else if (root === undefined || !countsAsOwner(manifest, root)) workloads.push(read.workload);
    else addTo(orphans, keyIn(manifest, root), { root, workload: read.workload });
  }
  const owning = [...orphans.values()].map(asOwner);
  const rollouts = rolloutsOf(manifests.filter((one) => !orphans.has(objectKey(one))));
  const own = workloads.map((workload) => asRolledOut(workload, rollouts));
  return { workloads: [...own, ...owning], otherOwners, notJudged, problems };
}

/**
 * Whether what the object owns is judged through it: it has the template of those pods. A Rollout
 * that refers to a Deployment has none, so its ReplicaSets are judged as the Rollout's, next to the
 * Deployment: only they show how many pods there are, since the Deployment is usually scaled to 0.
 * Nor does a pod have the template of those that it owns, as a driver of Spark owns its executors.
 */
export function hidesItsPods(manifest: Manifest): boolean {
  return workloadKindOf(manifest) !== undefined && manifest.kind !== "Pod";
}

/**
 * The keys of all owners of the workloads in the input, and of the owners of those: a Knative
 * Service owns a Configuration, which owns a Revision, which owns the Deployment.
 */
function ownersOfWorkloads(manifests: readonly Manifest[]): ReadonlySet<string> {
  const byKey = Map.groupBy(manifests, objectKey);
  const found = new Set<string>();
  let owned = manifests.filter((one) => workloadKindOf(one) !== undefined && !isOver(one));
  while (owned.length > 0) {
    const keys = new Set(owned.flatMap(ownerKeys)).difference(found);
    for (const key of keys) found.add(key);
    owned = [...keys].flatMap((key) => byKey.get(key) ?? []);
  }
  return found;
}

/** The key of the Deployment to which a Rollout without a template refers. */
function referredKey(manifest: Manifest): string {
  return keyIn(manifest, referredIn(valueAt(manifest.json, ["spec", "workloadRef"])));
}

/** The Rollouts without a template, by the key of the Deployment to which they refer. */
function rolloutsOf(manifests: readonly Manifest[]): ReadonlyMap<string, Manifest> {
  const referring = manifests.filter(({ kind, group }) => `${kind}.${group}` === rolloutKind);
  return new Map(referring.map((one) => [referredKey(one), one]));
}

const rolloutKind = "Rollout.argoproj.io";

/**
 * A Deployment with the pods of the Rollout that refers to it, where no ReplicaSets show them.
 * Source: argo-rollouts docs, "Migrating to Rollouts": the number of replicas is the Rollout's.
 */
function asRolledOut(workload: Workload, rollouts: ReadonlyMap<string, Manifest>): Workload {
  const rollout = rollouts.get(objectKey(workload.manifest));
  if (rollout === undefined || workload.replicas === undefined) return workload;
  const replicas = wholeNumberOf(valueAt(rollout.json, ["spec", "replicas"]) ?? 1);
  const most = replicas && Math.max(workload.replicas, replicas);
  return { ...workload, rollout: rollout.name, replicas: most };
}

/** The key by which the objects that it owns refer to it. */
export function objectKey(manifest: Manifest): string {
  return keyOf(manifest);
}

/**
 * The keys of the object's owner and of that one's owner: if either is listed, the object is not.
 */
export function ownerKeys(manifest: Manifest): readonly string[] {
  const owner = ownerOf(manifest);
  if (owner === undefined) return [];
  return [owner, rootOf(manifest, owner)].map((one) => keyIn(manifest, one));
}

/** The key of what an object of the same namespace refers to. */
function keyIn({ namespace }: Manifest, { kind, group, name }: Owner): string {
  return keyOf({ kind, group, namespace, name });
}

function ownerOf(manifest: Manifest): Owner | undefined {
  const references = listOf(valueAt(manifest.json, ["metadata", "ownerReferences"]));
  const controller = references.map(fieldsOf).find((reference) => reference.controller === true);
  const owner = referredIn(controller);
  return owner.kind === "" || owner.name === "" ? undefined : owner;
}

function referredIn(reference: unknown): Owner {
  const { apiVersion, kind: written, name } = fieldsOf(reference);
  const kind = nameOf(written) ?? "";
  const version = textOf(apiVersion);
  const group = version === undefined ? usualGroupOf(kind) : groupIn(version);
  return { kind, group, name: nameOf(name) ?? "" };
}

/**
 * Pods and revisions stand for their owner; anything else that an operator owns is a workload
 * itself.
 */
function countsAsOwner(manifest: Manifest, root: Owner): boolean {
  return manifest.kind === "Pod" || (manifest.kind === "ReplicaSet" && makers.has(root.kind));
}

/**
 * Labels whose value is the end of a ReplicaSet's name, `web-5d9f8c` of `web`, and the kind that
 * creates such ReplicaSets.
 */
const hashLabels = {
  "pod-template-hash": { kind: "Deployment", group: "apps" },
  "rollouts-pod-template-hash": { kind: "Rollout", group: "argoproj.io" },
};
const makers: ReadonlySet<string> = new Set(Object.values(hashLabels).map(({ kind }) => kind));

function rootOf(manifest: Manifest, owner: Owner): Owner {
  if (owner.kind !== "ReplicaSet") return owner;
  for (const [label, maker] of Object.entries(hashLabels)) {
    const suffix = `-${manifest.labels[label]}`;
    if (owner.name.endsWith(suffix)) return { ...maker, name: owner.name.slice(0, -suffix.length) };
  }
  return owner;
}

/**
 * The object that a pod or a revision stands for. The pods of a pod stand for its owner, together
 * with it, as those of a Spark application; if that has the template of the owning pod alone, or
 * there is none, for the owning pod.
 */
function rootAmong(
  manifest: Manifest,
  known: {
    readonly pods: ReadonlyMap<string, Manifest>;
    /** The keys of all owners, and of those whose pods are judged through them. */
    readonly owners: ReadonlySet<string>;
    readonly judged: ReadonlySet<string>;
  },
): Owner | undefined {
  const { kind, group, name } = manifest;
  const owner = ownerOf(manifest);
  const isOwner = kind === "Pod" && known.owners.has(objectKey(manifest));
  if (owner === undefined) return isOwner ? { kind, group, name } : undefined;
  const parent = owner.kind === "Pod" ? known.pods.get(keyIn(manifest, owner)) : undefined;
  const above = parent && ownerOf(parent);
  if (parent === undefined || above === undefined) return rootOf(manifest, owner);
  const root = rootOf(parent, above);
  return known.judged.has(keyIn(manifest, root)) ? owner : root;
}

/** A pod or a ReplicaSet, and the owner that it stands for. */
interface Orphan {
  readonly root: Owner;
  readonly workload: Workload;
}

/**
 * The owner of these pods or ReplicaSets, with the template of the revision that has the most pods;
 * of equal ones, of that with the longest grace. Old ReplicaSets are kept without pods.
 */
function asOwner(orphans: readonly Orphan[]): Workload {
  const revisions = [...Map.groupBy(orphans, revisionOf)];
  const sizes = new Map(revisions.map(([name, own]) => [name, countPods(own)]));
  const podsOf = (orphan: Orphan) => sizes.get(revisionOf(orphan)) ?? 0;
  const lead = orphans.reduce((best, one) => {
    const more = podsOf(one) - podsOf(best);
    const longer = one.workload.wantedGraceSeconds - best.workload.wantedGraceSeconds;
    return (more || longer) > 0 ? one : best;
  });
  const { kind, group, name } = lead.root;
  const replicas = kind === "DaemonSet" ? undefined : countPods(orphans);
  return { ...lead.workload, kind, group, name, replicas };
}

function revisionOf({ workload }: Orphan): string | undefined {
  const { manifest } = workload;
  return manifest.kind === "ReplicaSet" ? manifest.name : ownerOf(manifest)?.name;
}

/** A pod or ReplicaSet that two recordings contain counts once. */
function countPods(orphans: readonly Orphan[]): number {
  const byKey = new Map(orphans.map(({ workload }) => [objectKey(workload.manifest), workload]));
  return [...byKey.values()].reduce((sum, { replicas }) => sum + (replicas ?? 1), 0);
}

/** A pod or a Job that has finished does not need a grace period any more. */
function isOver(manifest: Manifest): boolean {
  const status = valueAt(manifest.json, ["status"]);
  if (manifest.kind === "Pod") {
    return ["Succeeded", "Failed"].includes(textOf(valueAt(status, ["phase"])) ?? "");
  }
  if (manifest.kind !== "Job") return false;
  const conditions = listOf(valueAt(status, ["conditions"])).map(fieldsOf);
  return conditions.some(
    (one) => (one.type === "Complete" || one.type === "Failed") && one.status === "True",
  );
}

/** Returns which of many objects with labels a selector selects, in their order. */
export type SelectedBy<Item> = (selector: LabelSelector | undefined) => readonly Item[];

/** Returns which of many selectors select given labels, in their order. */
export type Selecting<Item> = (labels: Labels) => readonly Item[];

/**
 * Looks objects up by one `key=value` of the selector. Trying every selector on every object takes
 * seconds in a namespace with a few thousand workloads.
 */
export function indexByLabels<Item>(
  items: readonly Item[],
  labelsOf: (item: Item) => Labels,
): SelectedBy<Item> {
  const byPair = new Map<string, Item[]>();
  for (const item of items) {
    for (const pair of Object.entries(labelsOf(item))) addTo(byPair, pairKey(pair), item);
  }
  return (selector) => {
    if (selector === undefined) return [];
    const [pair] = Object.entries(selector.matchLabels ?? {});
    const near = pair === undefined ? items : (byPair.get(pairKey(pair)) ?? []);
    return near.filter((item) => matchesLabelSelector(selector, labelsOf(item)));
  };
}

/** The inverse. An object without a selector selects nothing. */
export function indexBySelector<Item>(
  items: readonly Item[],
  selectorOf: (item: Item) => LabelSelector | undefined,
): Selecting<Item> {
  const byPair = new Map<string, number[]>();
  const anyLabels: number[] = [];
  items.forEach((item, at) => {
    const selector = selectorOf(item);
    const [pair] = Object.entries(selector?.matchLabels ?? {});
    if (pair !== undefined) addTo(byPair, pairKey(pair), at);
    else if (selector !== undefined) anyLabels.push(at);
  });
  return (labels) => {
    const near = Object.entries(labels).flatMap((pair) => byPair.get(pairKey(pair)) ?? []);
    return [...near, ...anyLabels]
      .sort((a, b) => a - b)
      .flatMap((at) => {
        const item = items[at] as Item;
        return matchesLabelSelector(selectorOf(item) as LabelSelector, labels) ? [item] : [];
      });
  };
}

function pairKey([key, value]: readonly [string, string]): string {
  return `${key}\u0000${value}`;
}

function addTo<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const found = map.get(key);
  if (found === undefined) map.set(key, [value]);
  else found.push(value);
}
