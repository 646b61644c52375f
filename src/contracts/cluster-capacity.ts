import type { NodeLoads } from "../core/capacity/node-capacity.ts";
import type { Amounts } from "../core/cluster/placement.ts";
import type { AttachedVolume, PodFacts } from "../core/cluster/pod.ts";
import type { NewPlaceholder, PlaceholderFacts } from "../core/drain/placeholder-plan.ts";

/** What the cluster has room for: asked before a planned departure, never under a notice. */
export interface ClusterCapacity {
  /** What is promised on one node: one list of its pods. */
  loadOn(nodeName: string, signal: AbortSignal): Promise<Amounts>;
  /** What is promised on each node: one list of all pods, of which one page at a time is held. */
  loads(signal: AbortSignal): Promise<NodeLoads>;
  /** The same pods, with where their volumes can be reached as far as that can be found out. */
  withVolumes(pods: readonly PodFacts[]): Promise<readonly PodFacts[]>;
}

/**
 * The pods that keep room for those of a leaving node, in the controller's own namespace. Both
 * writes are idempotent: what is there already was made, and what is gone was removed.
 */
export interface Placeholders {
  /** All of them, whosever they are. */
  list(): Promise<readonly PlaceholderFacts[]>;
  /** Lists and then watches those of one Departure until the signal aborts. */
  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders;
  /** Throws `LastcallError`: no PriorityClass, a quota, a missing right, no answer. */
  create(placeholder: NewPlaceholder): Promise<void>;
  /** Deletes by name, without grace. Throws `LastcallError` where there was no answer. */
  remove(name: string): Promise<void>;
}

export interface FollowedPlaceholders {
  synced(): Promise<void>;
  placeholders(): readonly PlaceholderFacts[];
  onChange(listener: () => void): () => void;
}

/** The volumes that are attached to one node. */
export interface VolumeAttachments {
  /** Lists and then watches until the signal aborts. */
  follow(nodeName: string, signal: AbortSignal): FollowedVolumes;
  /**
   * `namespace/name` of the claim that a persistent volume is bound to; undefined: none, or gone.
   */
  claimOf(volume: string): Promise<string | undefined>;
}

export interface FollowedVolumes {
  /** Rejects where the cluster does not let us look. */
  synced(): Promise<void>;
  volumes(): readonly AttachedVolume[];
  onChange(listener: () => void): () => void;
}
