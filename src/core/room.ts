import type { NodeFacts } from "./node.ts";
import { type Amounts, sumOf } from "./placement.ts";
import type { PodFacts } from "./pod.ts";
import { matchesNodeSelector } from "./selector.ts";
import { repellingTaint } from "./toleration.ts";

/** A node that may take pods, with what is left on it. */
export interface NodeRoom {
  readonly node: NodeFacts;
  readonly free: Amounts;
}

/** What is promised on each node already, by its name: the requests of its pods, and their number. */
export type NodeLoads = ReadonlyMap<string, Amounts>;

/** A pod for which there is no place, and what the nodes lack. */
export interface Homeless {
  readonly pod: PodFacts;
  /** As in `0 of 3 nodes: 2 short of cpu, 1 tainted gpu`. */
  readonly detail: string;
}

/** What one pod counts for on its node; a finished one for nothing. */
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
 * The nodes that can take pods: ready, schedulable, not about to leave, and of a known size.
 * `leaving` are the names of nodes that depart, whatever stands on them yet.
 */
export function roomsOf(about: {
  readonly nodes: readonly NodeFacts[];
  readonly loads: NodeLoads;
  readonly leaving: ReadonlySet<string>;
}): readonly NodeRoom[] {
  const { nodes, loads, leaving } = about;
  return nodes.flatMap((node) => {
    const usable = node.ready && !node.unschedulable && node.deletionAt === undefined;
    if (!usable || leaving.has(node.name) || node.allocatable === undefined) return [];
    return [{ node, free: less(node.allocatable, loads.get(node.name) ?? {}) }];
  });
}

/**
 * Of the pods that are to leave together those that have no place elsewhere. Each is put, the
 * largest first, where the least is left over. This finds a place for all in nearly every case
 * where there is one; that it finds none is a warning, never a ground to stop, because what it
 * does not judge (spreading, affinity between pods, new machines) can go either way.
 */
export function podsWithoutRoom(
  pods: readonly PodFacts[],
  rooms: readonly NodeRoom[],
): readonly Homeless[] {
  const free = new Map(rooms.map(({ node, free: left }) => [node.name, left]));
  const largestFirst = pods.toSorted((a, b) => sizeOf(b, rooms) - sizeOf(a, rooms));
  return largestFirst.flatMap((pod) => {
    const misfits = rooms.map((room) => misfitOf(pod, { ...room, free: freeOn(room, free) }));
    const [best] = rooms
      .filter((_, index) => misfits[index] === undefined)
      .toSorted((a, b) => shareLeft(a, free) - shareLeft(b, free));
    if (best === undefined) return [{ pod, detail: detailOf(misfits) }];
    free.set(best.node.name, less(freeOn(best, free), loadOf(pod)));
    return [];
  });
}

/** Why a pod cannot go to a node, in two or three words; undefined where it can. */
export function misfitOf(pod: PodFacts, { node, free }: NodeRoom): string | undefined {
  const { placement } = pod;
  if (placement === undefined) return undefined;
  const selected = Object.entries(placement.nodeSelector);
  const chosen =
    selected.every(([label, value]) => node.labels[label] === value) &&
    (placement.requiredNodes === undefined || matchesNodeSelector(node, placement.requiredNodes));
  if (!chosen) return "not selected";
  const reached = placement.volumeNodes?.every((nodes) => matchesNodeSelector(node, nodes)) ?? true;
  if (!reached) return "out of reach of its volume";
  const taint = repellingTaint(node.taints, pod.tolerations);
  if (taint !== undefined) return `tainted ${taint.key}`;
  const lacking = Object.entries(loadOf(pod)).find(
    ([resource, amount]) => isSaid(node, resource) && exceeds(amount, free[resource] ?? 0),
  );
  return lacking === undefined ? undefined : `short of ${lacking[0]}`;
}

/** Every machine has these, so that a Node that does not name one has just not said how much. */
const basics: ReadonlySet<string> = new Set(["cpu", "memory", "pods", "ephemeral-storage"]);

function isSaid(node: NodeFacts, resource: string): boolean {
  return node.allocatable?.[resource] !== undefined || !basics.has(resource);
}

/** Zero fits everywhere; sums of fractions may be off by a hair. */
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

function freeOn(room: NodeRoom, free: ReadonlyMap<string, Amounts>): Amounts {
  return free.get(room.node.name) ?? room.free;
}

/** The largest share of an ordinary machine that a pod takes, of any resource. */
function sizeOf(pod: PodFacts, rooms: readonly NodeRoom[]): number {
  const machine = rooms[0]?.node.allocatable ?? {};
  const shares = Object.entries(loadOf(pod)).map(
    ([resource, amount]) => amount / (machine[resource] ?? Number.POSITIVE_INFINITY),
  );
  return Math.max(0, ...shares);
}

function shareLeft(room: NodeRoom, free: ReadonlyMap<string, Amounts>): number {
  const all = room.node.allocatable?.cpu ?? 1;
  return (freeOn(room, free).cpu ?? 0) / (all || 1);
}

function detailOf(misfits: readonly (string | undefined)[]): string {
  const counts = Map.groupBy(misfits, (misfit) => misfit ?? "");
  const words = [...counts]
    .map(([misfit, nodes]) => ({ misfit, count: nodes.length }))
    .toSorted((a, b) => b.count - a.count || (a.misfit < b.misfit ? -1 : 1))
    .map(({ misfit, count }) => `${count} ${misfit}`);
  const found = words.length === 0 ? "" : `: ${words.join(", ")}`;
  return `0 of ${misfits.length} nodes${found}`;
}
