import type { NoticeReading } from "../core/notice/notice.ts";
import type { Instant } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";

/**
 * One cloud's word about the machine that we run on. One implementation a cloud; contract suite:
 * `test/contract/notice-source.contract.ts`.
 */
export interface NoticeSource {
  readonly cloud: "aws" | "gcp" | "azure";
  /**
   * The ways by which this cloud speaks, such as `aws/rebalance`; each tells its whole state every
   * time, and nothing of what another one tells.
   */
  readonly channels: readonly string[];

  /**
   * Listens on every channel until the signal aborts, then resolves. Never rejects: a metadata
   * service that is away, slow or talks nonsense is told to `onTrouble`, and asked again.
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
  /** What a channel says now, also when it is the same as before. */
  onReading(heard: HeardReading): void;
  /** What went wrong on a channel; it goes on. */
  onTrouble(channel: string, error: LastcallError): void;
  /** A channel has begun another turn: its loop lives. */
  onTurn(channel: string): void;
}

export interface HeardReading {
  readonly channel: string;
  readonly reading: Extract<NoticeReading, { readonly kind: "Read" }>;
  /** In the cloud's time (`cloudTime` in core). */
  readonly at: Instant;
  /** Our clock less the cloud's, where the two disagree. */
  readonly skewMs?: number | undefined;
}
