import { between, type Instant } from "../time/time.ts";

/** When a machine was launched, and the time at which its cloud said so, by the cloud's clock. */
export interface LaunchTime {
  readonly bornAt: Instant;
  /** Absent: the cloud's clock counts as ours. */
  readonly asOf?: Instant | undefined;
}

/**
 * Whether a machine already existed at an instant of ours. Its age, by the cloud's clock alone, is
 * compared with the time since then, by ours alone: two clocks that differ by minutes would show a
 * machine to be older or younger than it is.
 */
export function existedAt(at: Instant, { bornAt, asOf }: LaunchTime, now: Instant): boolean {
  return between(bornAt, asOf ?? now) >= between(at, now);
}
