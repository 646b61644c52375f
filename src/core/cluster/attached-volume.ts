import type { PodFacts } from "./pod.ts";

/** A VolumeAttachment of the node that is drained. */
export interface AttachedVolume {
  /** The name of the VolumeAttachment. */
  readonly name: string;
  /** The persistent volume behind it; absent for one that a pod defines in line. */
  readonly volume?: string | undefined;
  /** `namespace/name` of its claim, where that is known. */
  readonly claim?: string | undefined;
}

/**
 * The volumes to wait for after the last pod has left: a new pod elsewhere cannot have them before
 * they are detached here. Those of pods that stay (DaemonSets, static pods) go with the machine.
 */
export function awaitedVolumes(
  attached: readonly AttachedVolume[],
  staying: readonly PodFacts[],
): readonly AttachedVolume[] {
  const kept = new Set(
    staying.flatMap(({ namespace, volumeClaims }) =>
      volumeClaims.map((claim) => `${namespace}/${claim}`),
    ),
  );
  return attached.filter(({ claim }) => claim === undefined || !kept.has(claim));
}
