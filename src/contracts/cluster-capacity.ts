import type { NodeLoads } from "../core/capacity/node-capacity.ts";
import type { Amounts } from "../core/cluster/placement.ts";
import type { PodFacts } from "../core/cluster/pod.ts";

/** What the cluster has room for: asked before a planned departure, never under a notice. */
export interface ClusterCapacity {
  /** What is promised on one node: one list of its pods. */
  loadOn(nodeName: string, signal: AbortSignal): Promise<Amounts>;
  /** What is promised on each node: one list of all pods, of which one page at a time is held. */
  loads(signal: AbortSignal): Promise<NodeLoads>;
  /** The same pods, with where their volumes can be reached as far as that can be found out. */
  withVolumes(pods: readonly PodFacts[]): Promise<readonly PodFacts[]>;
}
