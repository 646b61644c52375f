import type { InstanceNotice, LifecycleHook } from "../../core/notice/instance-notice.ts";
import type { NoticeReading } from "../../core/notice/notice.ts";
import type { Instant } from "../../core/time/time.ts";
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
   * Resolves with the outcome once everything that the notice requires is written to the cluster.
   * Rejects if it could not be written: the notice then counts as not delivered, and has to be
   * delivered again.
   */
  onNotice(instanceNotice: InstanceNotice): Promise<NoticeDelivery>;
  /**
   * Resolves when the waiting group continues, or does not have to be told to. Rejects if it could
   * not be told, which has to be retried. This may take minutes or hours.
   */
  onHook(hook: LifecycleHook): Promise<HookDelivery>;
  onError(error: LastcallError): void;
}

/**
 * `Taken`: a Departure exists for it, or did; `NoNode`: the machine is not a node of the cluster;
 * `NotOwned`: no policy selects its node; `TooEarly`: deliver it again at `actFromAt`; `Stale`: it
 * expired long ago.
 */
export type NoticeDelivery = "Taken" | "NoNode" | "NotOwned" | "TooEarly" | "Stale";

/**
 * `Ended`: the group no longer waits; `NoNode`: the new instance is not a node of the cluster yet,
 * deliver it again; `LeftAlone`: the hook is not ours to complete.
 */
export type HookDelivery = "Ended" | "NoNode" | "LeftAlone";

/**
 * One cloud's notices for the machine that we run on. One implementation per cloud; contract suite:
 * `test/contract/notice-source.contract.ts`.
 */
export interface NoticeSource {
  readonly cloud: "aws" | "gcp" | "azure";
  /**
   * The sources of this cloud's notices, such as `aws/rebalance`. Each always delivers its whole
   * state, independent of the others.
   */
  readonly channels: readonly string[];

  /**
   * Reads every channel until the signal aborts, then resolves. Never rejects: a metadata service
   * that is unreachable, slow or returns garbage is reported to `onError`, and retried.
   */
  run(sink: NoticeSink, signal: AbortSignal): Promise<void>;

  /**
   * Tells the cloud that it need not wait any longer for this event. Only for a drained node,
   * because it shortens the remaining time. Absent if the cloud does not support this. Throws
   * `LastcallError` `CLOUD_UNREACHABLE` or `CLOUD_REFUSED`.
   */
  acknowledge?(eventId: string, signal: AbortSignal): Promise<void>;
}

export interface NoticeSink {
  /** The current state of a channel, even if it has not changed. */
  onReading(heard: NoticeSourceReading): void;
  /** An error on a channel, which continues. */
  onError(channel: string, error: LastcallError): void;
  /** The loop of a channel has started another round. */
  onTurn(channel: string): void;
}

export interface NoticeSourceReading {
  readonly channel: string;
  readonly reading: Extract<NoticeReading, { readonly kind: "Read" }>;
  /** In the cloud's time (`cloudTime` in core). */
  readonly at: Instant;
  /** Our clock minus the cloud's, if the two disagree. */
  readonly skewMs?: number | undefined;
}
