import type { AttachedVolume } from "../core/cluster/attached-volume.ts";

/** The volumes that are attached to one node. */
export interface VolumeAttachments {
  /** Lists and then watches until the signal aborts. */
  follow(nodeName: string, signal: AbortSignal): FollowedVolumes;
  /** `namespace/name` of the claim that a persistent volume is bound to; undefined: none, or gone. */
  claimOf(volume: string): Promise<string | undefined>;
}

export interface FollowedVolumes {
  /** Rejects where the cluster does not let us look. */
  synced(): Promise<void>;
  volumes(): readonly AttachedVolume[];
  onChange(listener: () => void): () => void;
}
