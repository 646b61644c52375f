import type { NodeLoads } from "../core/capacity/node-capacity.ts";
import type { Amounts } from "../core/cluster/placement.ts";
import type { AttachedVolume, PodFacts } from "../core/cluster/pod.ts";
import type { NewPlaceholder, PlaceholderFacts } from "../core/drain/placeholder-plan.ts";

/** Free capacity in the cluster. Used before a planned departure, never under a notice. */
export interface ClusterCapacity {
  /** The resource requests on one node, from one list of its pods. */
  loadOn(nodeName: string, signal: AbortSignal): Promise<Amounts>;
  /** The resource requests on every node, from one list of all pods, page by page. */
  loads(signal: AbortSignal): Promise<NodeLoads>;
  /** Adds to each pod where its volumes can be attached, as far as that is known. */
  withVolumes(pods: readonly PodFacts[]): Promise<readonly PodFacts[]>;
}

/**
 * Pods in the controller's namespace that reserve capacity for the pods of a departing node. Both
 * writes are idempotent: creating an existing pod and removing a missing one succeed.
 */
export interface Placeholders {
  /** The placeholders of all departures. */
  list(): Promise<readonly PlaceholderFacts[]>;
  /** Lists, then watches, the placeholders of one Departure until the signal aborts. */
  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders;
  /** Throws `LastcallError` for a missing PriorityClass or right, a quota, or no response. */
  create(placeholder: NewPlaceholder): Promise<void>;
  /** Deletes by name, without a grace period. Throws `LastcallError` if there is no response. */
  remove(name: string): Promise<void>;
}

export interface FollowedPlaceholders {
  synced(): Promise<void>;
  placeholders(): readonly PlaceholderFacts[];
  onChange(listener: () => void): () => void;
}

/** The volumes attached to one node. */
export interface VolumeAttachments {
  /** Lists, then watches, until the signal aborts. */
  follow(nodeName: string, signal: AbortSignal): FollowedVolumes;
  /**
   * `namespace/name` of the claim bound to a persistent volume; undefined if there is none.
   */
  claimOf(volume: string): Promise<string | undefined>;
}

export interface FollowedVolumes {
  /** Rejects if listing volume attachments is forbidden. */
  synced(): Promise<void>;
  volumes(): readonly AttachedVolume[];
  onChange(listener: () => void): () => void;
}
