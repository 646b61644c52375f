import type { InstanceNotice } from "../../core/notice/instance-notice.ts";
import type { LifecycleHook } from "../../core/notice/lifecycle-hook.ts";
import type { LastcallError } from "../../errors.ts";

/**
 * Notices for any machine of the fleet from outside the cluster: a queue, a list of operations.
 * Only the leader runs it. A feed may deliver the same notice any number of times.
 */
export interface NoticeFeed {
  /**
   * Runs until the signal aborts, then resolves. Never rejects: errors are passed to `onError`,
   * and the feed continues.
   */
  run(listener: FeedListener, signal: AbortSignal): Promise<void>;
}

export interface FeedListener {
  /**
   * Resolves once what the notice calls for is written to the cluster, with the outcome. Rejects if
   * it could not be written: the notice counts as not delivered, and has to be delivered again.
   */
  onNotice(instanceNotice: InstanceNotice): Promise<NoticeDelivery>;
  /**
   * Resolves when the waiting group has been told to continue, or need not be. Rejects if it could
   * not be told, which has to be retried. This may take minutes or hours.
   */
  onHook(hook: LifecycleHook): Promise<HookDelivery>;
  onError(error: LastcallError): void;
}

/**
 * `Taken`: a Departure exists for it, or did; `NoNode`: the machine is no node of the cluster;
 * `NotOwned`: no policy selects its node; `TooEarly`: deliver it again at `actFromAt`; `Stale`: it
 * is long over.
 */
export type NoticeDelivery = "Taken" | "NoNode" | "NotOwned" | "TooEarly" | "Stale";

/**
 * `Ended`: the group no longer waits; `NoNode`: the new instance is not a node of the cluster yet,
 * deliver it again; `LeftAlone`: the hook is not ours to complete.
 */
export type HookDelivery = "Ended" | "NoNode" | "LeftAlone";
