import type { InstanceNotice } from "../core/notice/instance-notice.ts";
import type { LifecycleHook } from "../core/notice/lifecycle-hook.ts";
import type { LastcallError } from "../errors.ts";

/**
 * The cloud's word about any machine of the fleet, from a place outside the cluster: a queue, a
 * list of operations. Only the leader listens. One feed may tell the same word any number of times.
 */
export interface NoticeFeed {
  /**
   * Listens until the signal aborts, then resolves. Never rejects: what goes wrong is told to
   * `onTrouble`, and the feed goes on.
   */
  run(listener: FeedListener, signal: AbortSignal): Promise<void>;
}

export interface FeedListener {
  /**
   * Resolves when what the word calls for is written into the cluster, and says what became of it.
   * Rejects where it could not be written: the word is not heard then, and is to be told again.
   */
  onNotice(instanceNotice: InstanceNotice): Promise<NoticeFate>;
  /**
   * Resolves when the group that waits has been told to go on, or is not to be told. Rejects where
   * it could not be told, which is to be tried again. Minutes or hours may pass until then.
   */
  onHook(hook: LifecycleHook): Promise<HookFate>;
  onTrouble(error: LastcallError): void;
}

/**
 * `Taken`: a Departure stands for it, or stood; `NoNode`: no node of the cluster is this machine;
 * `NotOwned`: its node falls under no policy; `TooEarly`: it is to be told again when its time
 * comes (`actFromAt`); `Stale`: its time is long past.
 */
export type NoticeFate = "Taken" | "NoNode" | "NotOwned" | "TooEarly" | "Stale";

/**
 * `Ended`: the group waits no more; `NoNode`: the new instance is no node of the cluster, or not
 * yet, and is to be told again; `LeftAlone`: it is not ours to tell.
 */
export type HookFate = "Ended" | "NoNode" | "LeftAlone";
