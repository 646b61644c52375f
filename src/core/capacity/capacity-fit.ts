import { type Amounts, type NodeFacts, sumOf, type Taint } from "../cluster/node.ts";
import type { PodFacts, Toleration } from "../cluster/pod.ts";
import { matchesNodeSelector } from "../policy/policy.ts";

/** A node that may take pods, and its free capacity. */
export interface NodeCapacity {
  readonly node: NodeFacts;
  readonly free: Amounts;
}

/** What is requested on each node, by its name: the requests of its pods, and their number. */
export type NodeLoads = ReadonlyMap<string, Amounts>;

/** What a pod uses on its node; a finished pod uses nothing. */
export function loadOf(pod: Pick<PodFacts, "phase" | "placement">): Amounts {
  if (pod.phase === "Succeeded" || pod.phase === "Failed") return {};
  return sumOf(pod.placement?.requests ?? {}, { pods: 1 });
}

export function loadsOf(pods: readonly PodFacts[]): NodeLoads {
  const loads = new Map<string, Amounts>();
  for (const pod of pods) {
    if (pod.nodeName === undefined) continue;
    loads.set(pod.nodeName, sumOf(loads.get(pod.nodeName) ?? {}, loadOf(pod)));
  }
  return loads;
}

/**
 * The nodes that can take pods: ready, schedulable, not departing, and of known size. `leaving` are
 * the names of departing nodes, whether or not they carry marks yet.
 */
export function capacitiesOf(about: {
  readonly nodes: readonly NodeFacts[];
  readonly loads: NodeLoads;
  readonly leaving: ReadonlySet<string>;
}): readonly NodeCapacity[] {
  const { nodes, loads, leaving } = about;
  return nodes.flatMap((node) => {
    const usable = node.ready && !node.unschedulable && node.deletionAt === undefined;
    if (!usable || leaving.has(node.name) || node.allocatable === undefined) return [];
    return [{ node, free: less(node.allocatable, loads.get(node.name) ?? {}) }];
  });
}

/** Why a pod does not fit on a node, in two or three words; undefined if it does. */
function misfitOf(pod: PodFacts, capacity: NodeCapacity): string | undefined {
  return barrierOf(pod, capacity.node) ?? shortageOf(pod, capacity);
}

/** What prevents a pod from running on a node, however empty the node is. */
function barrierOf(pod: PodFacts, node: NodeFacts): string | undefined {
  const { placement } = pod;
  if (placement === undefined) return undefined;
  const selected = Object.entries(placement.nodeSelector);
  const chosen =
    selected.every(([label, value]) => node.labels[label] === value) &&
    (placement.requiredNodes === undefined || matchesNodeSelector(node, placement.requiredNodes));
  if (!chosen) return "not selected";
  const reached = placement.volumeNodes?.every((nodes) => matchesNodeSelector(node, nodes)) ?? true;
  if (!reached) {
    const isLocal = (pod.localClaims ?? []).length > 0;
    return isLocal ? "out of reach of its volume on this machine" : "out of reach of its volume";
  }
  const taint = repellingTaint(node.taints, pod.tolerations);
  return taint === undefined ? undefined : `tainted ${taint.key}`;
}

/** A resource of which the node has less than the pod requests. */
function shortageOf(pod: PodFacts, { node, free }: NodeCapacity): string | undefined {
  if (pod.placement === undefined) return undefined;
  for (const [resource, amount] of Object.entries(loadOf(pod))) {
    const lacks = isSaid(node, resource) && exceeds(amount, free[resource] ?? 0);
    if (lacks) return `short of ${resource}`;
  }
  return undefined;
}

/** Every machine has these, so if a Node does not list one, its amount is merely unknown. */
const basics: ReadonlySet<string> = new Set(["cpu", "memory", "pods", "ephemeral-storage"]);

function isSaid(node: NodeFacts, resource: string): boolean {
  return node.allocatable?.[resource] !== undefined || !basics.has(resource);
}

/** Zero fits everywhere; sums of fractions may be slightly off. */
function exceeds(amount: number, free: number): boolean {
  return amount > 0 && amount > free + 1e-6 * Math.max(1, Math.abs(free));
}

function less(a: Amounts, b: Amounts): Amounts {
  const left: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    left[resource] = (left[resource] ?? 0) - amount;
  }
  return left;
}

/**
 * The first taint that keeps a pod off a node; undefined if none does. PreferNoSchedule is a
 * preference. Source: k8s.io/component-helpers `scheduling/corev1/helpers.go`.
 */
export function repellingTaint(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
): Taint | undefined {
  return taints.find(
    (taint) =>
      taint.effect !== "PreferNoSchedule" && !tolerations.some((one) => tolerates(one, taint)),
  );
}

/** Source: k8s.io/api `core/v1/toleration.go`, ToleratesTaint. */
function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "");
}

/** A pod that fits on no node, and what the nodes lack. */
export interface UnplacedPod {
  readonly pod: PodFacts;
  /** As in `0 of 3 nodes: 2 short of cpu, 1 tainted gpu`. */
  readonly detail: string;
}

/** How many times the pods that did not fit are placed again, ahead of all others. */
const secondTries = 3;

/** A pod with the requirements that are checked repeatedly. */
interface Guest {
  readonly pod: PodFacts;
  readonly load: Amounts;
  /** A key that pods with the same requirements share. */
  readonly kind: string;
  /** The nodes that can take it if they have enough free capacity. */
  readonly reach: readonly NodeCapacity[];
}

interface Laid {
  readonly left: readonly Guest[];
  readonly free: ReadonlyMap<string, Amounts>;
}

/**
 * Returns those of the pods leaving together that fit nowhere else. The pods are placed largest
 * first, each on the node where the least capacity remains; if some do not fit, they are placed
 * first in the next attempt. This finds a placement in nearly every case in which there is one. Not
 * finding one is a warning, never a reason to stop, because what is not considered (spreading,
 * affinity between pods, new machines) can go either way. `others` are nodes that cannot take the
 * pods: they only count in the message.
 */
export function podsWithoutCapacity(
  pods: readonly PodFacts[],
  capacities: readonly NodeCapacity[],
  others: readonly NodeCapacity[] = [],
): readonly UnplacedPod[] {
  let order = guestsOf(pods, capacities);
  let best = lay(order, capacities);
  let latest = best;
  for (let tries = 0; tries < secondTries && best.left.length > 0; tries += 1) {
    const left = new Set(latest.left);
    order = [...latest.left, ...order.filter((guest) => !left.has(guest))];
    latest = lay(order, capacities);
    if (latest.left.length < best.left.length) best = latest;
  }
  const words = new Map<string, string>();
  return best.left.map(({ pod, kind }) => {
    const detail = words.get(kind) ?? detailOf(pod, { ...best, capacities, others });
    words.set(kind, detail);
    return { pod, detail };
  });
}

/** One pod of each kind: its result holds for all pods with the same requirements. */
function oneOfEachKind(pods: readonly PodFacts[]): readonly PodFacts[] {
  return [...new Map(pods.map((pod) => [kindOf(pod), pod])).values()];
}

function kindOf(pod: PodFacts): string {
  return `${whereOf(pod)} ${JSON.stringify(loadOf(pod))}`;
}

function whereOf({ placement, tolerations }: PodFacts): string {
  const { nodeSelector, requiredNodes, volumeNodes } = placement ?? {};
  return JSON.stringify([nodeSelector, requiredNodes, volumeNodes, tolerations]);
}

/** Largest first. */
function guestsOf(
  pods: readonly PodFacts[],
  capacities: readonly NodeCapacity[],
): readonly Guest[] {
  const machine = capacities[0]?.node.allocatable ?? {};
  const reaches = new Map<string, readonly NodeCapacity[]>();
  const guests = pods.map((pod) => {
    const load = loadOf(pod);
    const where = whereOf(pod);
    const reach =
      reaches.get(where) ?? capacities.filter(({ node }) => barrierOf(pod, node) === undefined);
    reaches.set(where, reach);
    return { guest: { pod, load, kind: kindOf(pod), reach }, size: sizeOf(load, machine) };
  });
  return guests.toSorted((a, b) => b.size - a.size).map(({ guest }) => guest);
}

function lay(order: readonly Guest[], capacities: readonly NodeCapacity[]): Laid {
  const free = new Map(capacities.map((capacity) => [capacity.node.name, capacity.free]));
  const left: Guest[] = [];
  const hopeless = new Set<string>();
  for (const guest of order) {
    const best = hopeless.has(guest.kind) ? undefined : tightest(guest, free);
    if (best === undefined) {
      left.push(guest);
      hopeless.add(guest.kind);
    } else free.set(best.node.name, less(freeOn(best, free), guest.load));
  }
  return { left, free };
}

function tightest(guest: Guest, free: ReadonlyMap<string, Amounts>): NodeCapacity | undefined {
  let best: NodeCapacity | undefined;
  let leastShare = Number.POSITIVE_INFINITY;
  for (const capacity of guest.reach) {
    const now = { node: capacity.node, free: freeOn(capacity, free) };
    const share = shareLeft(now);
    if (share >= leastShare || shortageOf(guest.pod, now) !== undefined) continue;
    best = capacity;
    leastShare = share;
  }
  return best;
}

function freeOn(capacity: NodeCapacity, free: ReadonlyMap<string, Amounts>): Amounts {
  return free.get(capacity.node.name) ?? capacity.free;
}

/** The largest share of a machine that the pod requests, over all resources. */
function sizeOf(load: Amounts, machine: Amounts): number {
  const shares = Object.entries(load).map(
    ([resource, amount]) => amount / (machine[resource] ?? Number.POSITIVE_INFINITY),
  );
  return Math.max(0, ...shares);
}

function shareLeft({ node, free }: NodeCapacity): number {
  return (free.cpu ?? 0) / (node.allocatable?.cpu || 1);
}

function detailOf(
  pod: PodFacts,
  about: Laid & {
    readonly capacities: readonly NodeCapacity[];
    readonly others: readonly NodeCapacity[];
  },
): string {
  const { capacities, others, free } = about;
  const misfits = [
    ...capacities.map((capacity) => misfitOf(pod, { ...capacity, free: freeOn(capacity, free) })),
    ...others.map((capacity) => misfitOf(pod, capacity)),
  ];
  const counts = Map.groupBy(misfits, (misfit) => misfit ?? "");
  const words = [...counts]
    .map(([misfit, nodes]) => ({ misfit, count: nodes.length }))
    .toSorted((a, b) => b.count - a.count || (a.misfit < b.misfit ? -1 : 1))
    .map(({ misfit, count }) => `${count} ${misfit}`);
  const found = words.length === 0 ? "" : `: ${words.join(", ")}`;
  return `0 of ${misfits.length} ${misfits.length === 1 ? "node" : "nodes"}${found}`;
}

export interface CapacityQuestion {
  /** The pods that leave together and are recreated elsewhere. */
  readonly pods: readonly PodFacts[];
  readonly nodes: readonly NodeFacts[];
  /** Names of departing nodes, whether or not they carry marks yet. */
  readonly leaving: ReadonlySet<string>;
  /** What is requested on each node that was read; a missing node has not been read. */
  readonly loads: NodeLoads;
}

export type CapacityAnswer =
  /** Read the pods of these nodes and ask again. */
  | { readonly kind: "LookAt"; readonly nodes: readonly string[] }
  /** Too many nodes remain to list each: list all pods and ask again. */
  | { readonly kind: "LookEverywhere" }
  | { readonly kind: "Settled"; readonly unplaced: readonly UnplacedPod[] };

/** How many nodes are listed one by one before all pods are listed. */
const oneByOneLimit = 16;

/**
 * Determines with few reads whether pods fit elsewhere. A placement on the nodes read so far is
 * enough, so in a cluster with free capacity one or two nodes will do. A pod is reported as not
 * fitting only once every node has been read that could take any of the pods if it were empty. The
 * newest nodes come first, because they are usually the emptiest; each round reads as many as all
 * rounds before it.
 */
export function searchCapacity(question: CapacityQuestion): CapacityAnswer {
  const { pods, loads } = question;
  const capacities = capacitiesOf(question);
  const [seen, unseen] = parted(capacities, ({ node }) => loads.has(node.name));
  const unplaced = podsWithoutCapacity(pods, seen, unseen);
  const wanting = oneOfEachKind(unplaced.map(({ pod }) => pod)).filter((pod) =>
    capacities.some(({ node }) => couldTake(node, pod)),
  );
  if (wanting.length === 0) return { kind: "Settled", unplaced };
  const kinds = oneOfEachKind(pods);
  const newestFirst = unseen
    .map(({ node }) => node)
    .toSorted((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0) || (a.name < b.name ? -1 : 1));
  const [better, others] = parted(newestFirst, (node) => couldTakeAny(node, wanting));
  const open = [...better, ...others.filter((node) => couldTakeAny(node, kinds))];
  if (open.length === 0) return { kind: "Settled", unplaced };
  const few = open.length + seen.length <= oneByOneLimit || seen.length < oneByOneLimit / 2;
  if (!few) return { kind: "LookEverywhere" };
  const next = open.slice(0, Math.max(1, seen.length));
  return { kind: "LookAt", nodes: next.map(({ name }) => name) };
}

/** Whether the node could take the pod if it were empty. */
function couldTake(node: NodeFacts, pod: PodFacts): boolean {
  return misfitOf(pod, { node, free: node.allocatable ?? {} }) === undefined;
}

function couldTakeAny(node: NodeFacts, pods: readonly PodFacts[]): boolean {
  return pods.some((pod) => couldTake(node, pod));
}

function parted<T>(all: readonly T[], holds: (one: T) => boolean): readonly [T[], T[]] {
  const { yes = [], no = [] } = Object.groupBy(all, (one) => (holds(one) ? "yes" : "no"));
  return [yes, no];
}
