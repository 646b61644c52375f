import type { NoticeReading } from "../../core/notice/notice.ts";
import type { Instant } from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";

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
   * that is unreachable, slow or answers garbage is reported to `onError`, and retried.
   */
  run(sink: NoticeSink, signal: AbortSignal): Promise<void>;

  /**
   * Tells the cloud that it need not wait any longer for this event. Only for a node that is
   * drained: it shortens the time that is left. Absent where the cloud has no such thing.
   * Throws `LastcallError` `CLOUD_UNREACHABLE` or `CLOUD_REFUSED`.
   */
  acknowledge?(eventId: string, signal: AbortSignal): Promise<void>;
}

export interface NoticeSink {
  /** The state of a channel now, also if it has not changed. */
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
  /** Our clock less the cloud's, where the two disagree. */
  readonly skewMs?: number | undefined;
}
