import type { Instant } from "../../core/time/time.ts";

/**
 * EC2 takes 200 values of filters in one request ("FilterLimitExceeded"); ten are left for the tag
 * and the type.
 */
export const mostAskedFor = 190;

/**
 * What is asked of EC2 itself. Made by `ec2-client.ts`. All methods read every page, and throw
 * `LastcallError` `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2 {
  /**
   * What is scheduled for instances of the region, over and called off too; of the others nothing.
   */
  scheduledEvents(signal: AbortSignal): Promise<readonly ScheduledEvent[]>;
  /** The ids of the region's instances that carry the tag; `only`: of these, 190 at the most. */
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
