import type { ClusterCapacity, FleetView } from "../contracts/cluster.ts";
import { searchCapacity, type UnplacedPod } from "../core/capacity/capacity-fit.ts";
import { type Amounts, isOnWindows, type NodeFacts } from "../core/cluster/node.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import { isLive, isUnderWay } from "../core/departure/departure.ts";

export interface CapacityScene extends Pick<FleetView, "nodes" | "departures"> {
  /** The name of the departing node. */
  readonly node: string;
}

/**
 * Returns the pods that currently fit on no other node. If there is capacity, this lists the pods
 * of one or two nodes; if there is none, it lists all pods once and keeps only sums. Returns
 * nothing if no other node reports its allocatable resources.
 */
export async function findUnplacedPods(
  pods: readonly PodFacts[],
  about: { readonly scene: CapacityScene; readonly capacity: ClusterCapacity },
  signal: AbortSignal,
): Promise<readonly UnplacedPod[]> {
  const { scene, capacity } = about;
  const { departures } = scene;
  const nodes = likeNodes(scene);
  const underWay = departures.filter((one) => isLive(one) && isUnderWay(one));
  const leaving = new Set([scene.node, ...underWay.map((one) => one.node.name)]);
  const known = nodes.some(({ name, allocatable }) => name !== scene.node && allocatable);
  if (pods.length === 0 || !known) return [];
  const placed = await capacity.withVolumes(pods);
  const loads = new Map<string, Amounts>();
  for (;;) {
    const answer = searchCapacity({ pods: placed, nodes, leaving, loads });
    if (answer.kind === "Settled") return answer.unplaced;
    if (answer.kind === "LookEverywhere") {
      const all = await capacity.loads(signal);
      for (const { name } of nodes) loads.set(name, all.get(name) ?? {});
    } else {
      const found = answer.nodes.map(
        async (name) => [name, await capacity.loadOn(name, signal)] as const,
      );
      for (const [name, load] of await Promise.all(found)) loads.set(name, load);
    }
  }
}

/**
 * The nodes with the operating system of the departing one. Pods rarely require it of a node, but
 * their images run on no other.
 */
function likeNodes({ node, nodes }: CapacityScene): readonly NodeFacts[] {
  const own = nodes.find(({ name }) => name === node);
  if (own === undefined) return nodes;
  return nodes.filter((one) => isOnWindows(one) === isOnWindows(own));
}
