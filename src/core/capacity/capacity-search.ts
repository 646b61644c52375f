import type { NodeFacts } from "../cluster/node.ts";
import type { PodFacts } from "../cluster/pod.ts";
import { type Homeless, oneOfEachKind, podsWithoutCapacity } from "./capacity-fit.ts";
import { capacitiesOf, misfitOf, type NodeLoads } from "./node-capacity.ts";

export interface CapacityQuestion {
  /** The pods that leave together and come back elsewhere. */
  readonly pods: readonly PodFacts[];
  readonly nodes: readonly NodeFacts[];
  /** Names of nodes that depart, whatever stands on them yet. */
  readonly leaving: ReadonlySet<string>;
  /** What is promised on each node that was looked at: one that is missing was not. */
  readonly loads: NodeLoads;
}

export type CapacityAnswer =
  /** Look at the pods of these nodes and ask again. */
  | { readonly kind: "LookAt"; readonly nodes: readonly string[] }
  /** Too many nodes are left for one list each: look at all pods and ask again. */
  | { readonly kind: "LookEverywhere" }
  | { readonly kind: "Settled"; readonly homeless: readonly Homeless[] };

/** So many nodes are looked at one by one before all pods are listed. */
const oneByOneLimit = 16;

/**
 * Finds out with few looks whether pods have a place elsewhere. A place that was found on the nodes
 * looked at so far is proof enough, so that with room in the cluster a node or two will do. That a
 * pod has none is said only when every node was looked at that could take any of the pods, were it
 * empty. The newest nodes come first, being the least filled as a rule; each round looks at as many
 * as all before it.
 */
export function searchCapacity(question: CapacityQuestion): CapacityAnswer {
  const { pods, loads } = question;
  const capacities = capacitiesOf(question);
  const [seen, unseen] = parted(capacities, ({ node }) => loads.has(node.name));
  const homeless = podsWithoutCapacity(pods, seen, unseen);
  const wanting = oneOfEachKind(homeless.map(({ pod }) => pod)).filter((pod) =>
    capacities.some(({ node }) => couldTake(node, pod)),
  );
  if (wanting.length === 0) return { kind: "Settled", homeless };
  const kinds = oneOfEachKind(pods);
  const newestFirst = unseen
    .map(({ node }) => node)
    .toSorted((a, b) => (b.createdAt ?? 0) - (a.createdAt ?? 0) || (a.name < b.name ? -1 : 1));
  const [better, others] = parted(newestFirst, (node) => couldTakeAny(node, wanting));
  const open = [...better, ...others.filter((node) => couldTakeAny(node, kinds))];
  if (open.length === 0) return { kind: "Settled", homeless };
  const few = open.length + seen.length <= oneByOneLimit || seen.length < oneByOneLimit / 2;
  if (!few) return { kind: "LookEverywhere" };
  const next = open.slice(0, Math.max(1, seen.length));
  return { kind: "LookAt", nodes: next.map(({ name }) => name) };
}

/** Were it empty. */
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
