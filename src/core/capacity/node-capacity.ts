import type { NodeFacts, Taint } from "../cluster/node.ts";
import { type Amounts, sumOf } from "../cluster/placement.ts";
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
export function misfitOf(pod: PodFacts, capacity: NodeCapacity): string | undefined {
  return barrierOf(pod, capacity.node) ?? shortageOf(pod, capacity);
}

/** What prevents a pod from running on a node, however empty the node is. */
export function barrierOf(pod: PodFacts, node: NodeFacts): string | undefined {
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
  return taint === undefined ? undefined : `tainted ${taint.key}`;
}

/** A resource of which the node has less than the pod requests. */
export function shortageOf(pod: PodFacts, { node, free }: NodeCapacity): string | undefined {
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

export function less(a: Amounts, b: Amounts): Amounts {
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
