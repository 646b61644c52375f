import type { Clock } from "../contracts/clock.ts";
import type { FollowedVolumes, VolumeAttachments } from "../contracts/cluster-capacity.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import { type AttachedVolume, awaitedVolumes } from "../core/cluster/attached-volume.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import type { Instant } from "../core/time/time.ts";
import type { CaseContext } from "./case-context.ts";

export interface VolumeOrder {
  readonly node: string;
  /** Pods that stay on the node: their volumes stay with them. */
  readonly staying: readonly PodFacts[];
  /** Until when there is time; asked again whenever the departure changes. */
  readonly until: () => Instant;
}

export interface VolumeTools {
  readonly attachments: VolumeAttachments;
  readonly clock: Clock;
}

/**
 * Waits until the volumes of the pods that have left are detached, so that the machine does not go
 * with them and their new pods need not wait for a forced detach; as long as there is time. Gives
 * what is still attached. Rejects where the cluster does not let us look.
 */
export async function waitForVolumes(
  order: VolumeOrder,
  about: { readonly context: CaseContext; readonly tools: VolumeTools },
  signal: AbortSignal,
): Promise<readonly AttachedVolume[]> {
  const { context, tools } = about;
  const wakeup = new Wakeup(tools.clock);
  const wake = () => wakeup.wake();
  const done = new AbortController();
  const followed = tools.attachments.follow(order.node, AbortSignal.any([signal, done.signal]));
  const stops = [followed.onChange(wake), context.onObserved(wake)];
  const claims = new Map<string, string | undefined>();
  try {
    await followed.synced();
    for (;;) {
      const attached = await withClaims(followed, { claims, tools });
      signal.throwIfAborted();
      const left = awaitedVolumes(attached, order.staying);
      if (left.length === 0 || tools.clock.now() >= order.until()) return left;
      await context.tell("VolumeWait", volumeWords(left));
      await wakeup.sleepUntil(order.until(), signal);
    }
  } finally {
    for (const stop of stops) stop();
    done.abort();
  }
}

export function volumeWords(volumes: readonly AttachedVolume[]): string {
  const names = volumes.map(({ claim, volume, name }) => claim ?? volume ?? name).toSorted();
  const shown = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

/** A volume is bound to one claim for good, so that it is asked for once. */
async function withClaims(
  followed: FollowedVolumes,
  about: { readonly claims: Map<string, string | undefined>; readonly tools: VolumeTools },
): Promise<readonly AttachedVolume[]> {
  const { claims, tools } = about;
  return Promise.all(
    followed.volumes().map(async (one) => {
      if (one.volume === undefined) return one;
      if (!claims.has(one.volume)) {
        claims.set(one.volume, await tools.attachments.claimOf(one.volume));
      }
      return { ...one, claim: claims.get(one.volume) };
    }),
  );
}
