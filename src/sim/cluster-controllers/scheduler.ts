import { cordonTaint, parseQuantity, type Taint, zoneLabel } from "../../core/cluster/node.ts";
import { meetsRequirement, type Toleration } from "../../core/cluster/pod.ts";
import {
  type ModelObject,
  type ModelStore,
  type StoredChange,
  timestamp,
} from "../api/store/object-store.ts";
import {
  controllerOf,
  keyOf,
  type NodeObject,
  type NodeTerm,
  type PodObject,
  type PodSpec,
  readyOf,
  withCondition,
} from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";

/**
 * How many fitting nodes are compared; the real scheduler also scores a sample of a large cluster.
 */
const comparedMax = 100;

/**
 * Binds pods to a ready node that is not cordoned, has no untolerated taint and has capacity;
 * spreads them over zones, then over nodes, then by load. A pod that tolerates the taint of a
 * cordon ignores the cordon. Source: kubernetes pkg/scheduler/framework/plugins/nodeunschedulable.
 */
export class Scheduler implements ModelController {
  readonly name = "scheduler";
  readonly watches = {
    pods: (change: { object: unknown }) => this.#waitingPod(change.object as PodObject),
    nodes: ({ type }: { type: string }) => {
      if (type !== "MODIFIED") this.#nodeNames = undefined;
      return [...this.#waiting];
    },
  };
  readonly #loop: ControllerLoop;
  readonly #cache: SchedulerCache;
  /** Unschedulable pods; retried whenever a node changes or a pod leaves. */
  readonly #waiting = new Set<string>();
  /** Sorted by name; listed again when a Node is added or deleted. */
  #nodeNames: readonly string[] | undefined;
  #nextStart = 0;

  constructor(loop: ControllerLoop) {
    this.#loop = loop;
    this.#cache = new SchedulerCache(loop.context.store);
  }

  reconcile(key: string): void {
    const pod = this.#loop.get<PodObject>("pods", key);
    if (!pod || !wantsPlace(pod)) {
      this.#waiting.delete(key);
      return;
    }
    const node = this.#choose(pod);
    if (node) this.#bind(pod, node);
    else this.#leaveWaiting(pod);
  }

  #waitingPod(pod: PodObject): readonly string[] {
    if (wantsPlace(pod) && !this.#waiting.has(keyOf(pod))) return [keyOf(pod)];
    const freesCapacity =
      pod.metadata.deletionTimestamp !== undefined || pod.status.phase === "Failed";
    return freesCapacity ? [keyOf(pod), ...this.#waiting] : [];
  }

  #choose(pod: PodObject): NodeObject | undefined {
    const nodes = this.#loop.collection("nodes");
    this.#nodeNames ??= nodes.list().map((node) => node.metadata.name);
    const names = this.#nodeNames;
    const [request, spread] = [requestsOf(pod), this.#cache.spreadOf(pod)];
    let best: { node: NodeObject; score: readonly number[] } | undefined;
    let compared = 0;
    for (let step = 0; step < names.length && compared < comparedMax; step += 1) {
      const name = names[(this.#nextStart + step) % names.length] ?? "";
      const node = nodes.get("", name) as NodeObject | undefined;
      if (!node || !this.#fits(pod, { node, request })) continue;
      compared += 1;
      const score = this.#score(node, spread);
      if (!best || isLess(score, best.score)) best = { node, score };
    }
    if (names.length > comparedMax)
      this.#nextStart = (this.#nextStart + comparedMax) % names.length;
    return best?.node;
  }

  #fits(pod: PodObject, at: { node: NodeObject; request: Load }): boolean {
    const { node, request } = at;
    if (node.spec.unschedulable && !toleratesTaints(pod.spec.tolerations, [cordonTaint])) {
      return false;
    }
    if (readyOf(node) !== "True") return false;
    if (node.metadata.deletionTimestamp !== undefined) return false;
    if (!toleratesTaints(pod.spec.tolerations, node.spec.taints)) return false;
    if (!choosesNode(pod.spec, node)) return false;
    const { cpu, memory, pods } = this.#cache.loadOf(node.metadata.name);
    const capacity = node.status.allocatable ?? {};
    return (
      pods + 1 <= amountOf(capacity.pods ?? "110") &&
      cpu + request.cpu <= amountOf(capacity.cpu) + 1e-9 &&
      memory + request.memory <= amountOf(capacity.memory)
    );
  }

  /** Smaller is better; the first difference decides. */
  #score(node: NodeObject, { byNode, byZone }: Spread): readonly number[] {
    const load = this.#cache.loadOf(node.metadata.name);
    const cpuShare = load.cpu / (amountOf(node.status.allocatable?.cpu) || 1);
    const inZone = byZone.get(zoneOfNode(node)) ?? 0;
    return [inZone, byNode.get(node.metadata.name) ?? 0, cpuShare, load.pods];
  }

  #bind(pod: PodObject, node: NodeObject): void {
    this.#waiting.delete(keyOf(pod));
    const lastTransitionTime = timestamp(this.#loop.context.clock.now());
    const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime };
    const conditions = withCondition(pod.status.conditions, scheduled);
    const spec = { ...pod.spec, nodeName: node.metadata.name };
    this.#loop.put("pods", { ...pod, spec, status: { ...pod.status, conditions } });
  }

  #leaveWaiting(pod: PodObject): void {
    if (this.#waiting.has(keyOf(pod))) return;
    this.#waiting.add(keyOf(pod));
    const nodeCount = this.#loop.collection("nodes").size;
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: `0/${nodeCount} nodes are available.`,
      lastTransitionTime: timestamp(this.#loop.context.clock.now()),
    };
    const conditions = withCondition(pod.status.conditions, condition);
    this.#loop.put("pods", { ...pod, status: { ...pod.status, conditions } });
  }
}

function wantsPlace(pod: PodObject): boolean {
  const { nodeName, schedulerName } = pod.spec;
  if (nodeName !== undefined || pod.metadata.deletionTimestamp !== undefined) return false;
  return schedulerName === "default-scheduler" && pod.status.phase === "Pending";
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) return value < other;
  }
  return false;
}

interface Load {
  readonly cpu: number;
  readonly memory: number;
  readonly pods: number;
}

interface Spread {
  readonly byNode: ReadonlyMap<string, number>;
  readonly byZone: ReadonlyMap<string, number>;
}

const evenSpread: Spread = { byNode: new Map(), byZone: new Map() };

interface PlacedPod extends Load {
  readonly nodeName: string;
  readonly owner: string;
}

/** The requests of the pods on each node, and the spread of each owner's pods. */
class SchedulerCache {
  readonly #nodes: (name: string) => NodeObject | undefined;
  readonly #loads = new Map<string, Load>();
  readonly #placed = new Map<string, PlacedPod>();
  readonly #spread = new Map<string, Map<string, number>>();

  constructor(store: ModelStore) {
    this.#nodes = (name) => store.collection("nodes").get("", name) as NodeObject | undefined;
    const pods = store.collection("pods");
    for (const pod of pods.all()) this.#add(pod as PodObject);
    pods.subscribe((change) => this.#follow(change));
  }

  loadOf(nodeName: string): Load {
    return this.#loads.get(nodeName) ?? nothing;
  }

  /** How pods of the same owner are spread over nodes and zones. */
  spreadOf(pod: ModelObject): Spread {
    const owner = controllerOf(pod)?.uid;
    const byNode = owner === undefined ? undefined : this.#spread.get(owner);
    if (!byNode) return evenSpread;
    const byZone = new Map<string, number>();
    for (const [name, count] of byNode) {
      const zone = zoneOfNode(this.#nodes(name));
      byZone.set(zone, (byZone.get(zone) ?? 0) + count);
    }
    return { byNode, byZone };
  }

  #follow(change: StoredChange): void {
    this.#remove(keyOf(change.object));
    if (change.type !== "DELETED") this.#add(change.object as PodObject);
  }

  #add(pod: PodObject): void {
    const { nodeName } = pod.spec;
    const { phase } = pod.status;
    if (nodeName === undefined || phase === "Succeeded" || phase === "Failed") return;
    const owner = controllerOf(pod)?.uid ?? "";
    const placed = { nodeName, owner, ...requestsOf(pod) };
    this.#placed.set(keyOf(pod), placed);
    this.#count(placed, 1);
  }

  #remove(key: string): void {
    const placed = this.#placed.get(key);
    if (!placed) return;
    this.#placed.delete(key);
    this.#count(placed, -1);
  }

  #count({ nodeName, owner, cpu, memory }: PlacedPod, sign: 1 | -1): void {
    const load = this.loadOf(nodeName);
    this.#loads.set(nodeName, {
      cpu: load.cpu + sign * cpu,
      memory: load.memory + sign * memory,
      pods: load.pods + sign,
    });
    if (owner === "") return;
    const spread = this.#spread.get(owner) ?? new Map<string, number>();
    const count = (spread.get(nodeName) ?? 0) + sign;
    if (count > 0) spread.set(nodeName, count);
    else spread.delete(nodeName);
    if (spread.size > 0) this.#spread.set(owner, spread);
    else this.#spread.delete(owner);
  }
}

const nothing: Load = Object.freeze({ cpu: 0, memory: 0, pods: 0 });

function requestsOf(pod: PodObject): Load {
  let cpu = 0;
  let memory = 0;
  for (const { resources } of pod.spec.containers) {
    cpu += amountOf(resources?.requests?.cpu);
    memory += amountOf(resources?.requests?.memory);
  }
  return { cpu, memory, pods: 1 };
}

function zoneOfNode(node: NodeObject | undefined): string {
  return node?.metadata.labels?.[zoneLabel] ?? "";
}

/** Whether a pod's selector and required affinity match the node. */
export function choosesNode(spec: PodSpec, node: NodeObject): boolean {
  const labels = node.metadata.labels ?? {};
  const selector = Object.entries(spec.nodeSelector ?? {});
  if (!selector.every(([label, value]) => labels[label] === value)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => termFits(term, node));
}

/** Whether a pod tolerates the node's taints; PreferNoSchedule does not keep it away. */
export function toleratesTaints(
  tolerations: readonly Toleration[] | undefined,
  taints: readonly Taint[] | undefined,
): boolean {
  return (taints ?? []).every(
    (taint) =>
      taint.effect === "PreferNoSchedule" ||
      (tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  );
}

/** Source: k8s.io/api `core/v1/toleration.go`, ToleratesTaint. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
}

function termFits(term: NodeTerm, node: NodeObject): boolean {
  const labels = node.metadata.labels ?? {};
  const fields = { "metadata.name": node.metadata.name };
  const expressions = term.matchExpressions ?? [];
  const matchFields = term.matchFields ?? [];
  if (expressions.length + matchFields.length === 0) return false;
  return (
    expressions.every((one) => meetsRequirement(labels, one)) &&
    matchFields.every((one) => meetsRequirement(fields, one))
  );
}

const amounts = new Map<string, number>();
const amountsKept = 10_000;

/** The value of a quantity, 0 if absent; every placement parses the same few texts. */
function amountOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const before = amounts.get(text);
  if (before !== undefined) return before;
  const amount = parseQuantity(text) ?? 0;
  if (amounts.size < amountsKept) amounts.set(text, amount);
  return amount;
}
