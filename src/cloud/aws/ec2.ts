import type { Instant } from "../../core/time.ts";

/**
 * What is asked of EC2 itself. Made by `ec2-client.ts`. All methods read every page, and throw
 * `LastcallError` `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2 {
  /**
   * What is scheduled for instances of the region, over and called off too; of the others nothing.
   */
  scheduledEvents(signal: AbortSignal): Promise<readonly ScheduledEvent[]>;
  /** The ids of the region's instances that carry the tag, or of those among `only`. */
  tagged(tag: Tag, signal: AbortSignal, only?: readonly string[]): Promise<ReadonlySet<string>>;
}

/** As EC2 says it; any part may be missing. */
export interface ScheduledEvent {
  readonly instance?: string | undefined;
  readonly id?: string | undefined;
  /** Such as `system-reboot`. */
  readonly code?: string | undefined;
  readonly description?: string | undefined;
  readonly notBeforeAt?: Instant | undefined;
}

export interface Tag {
  readonly key: string;
  /** Absent: any. */
  readonly value?: string | undefined;
}
