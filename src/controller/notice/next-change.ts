import type { Clock } from "../../contracts/clock.ts";
import type { Fleet, FleetChange } from "../../contracts/fleet.ts";
import type { Millis } from "../../core/time/time.ts";

export interface ChangeWait {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly mostMs: Millis;
  /** Filters changes. Default: any change. */
  readonly concerns?: (change: FleetChange) => boolean;
  readonly signal?: AbortSignal;
}

/**
 * Resolves at the next change that passes the filter, or after `mostMs`. Rejects when the signal
 * aborts.
 */
export async function nextChange(wait: ChangeWait): Promise<void> {
  const { fleet, clock, mostMs, concerns, signal } = wait;
  const change = new AbortController();
  const stop = fleet.onChange((what) => {
    if (concerns?.(what) ?? true) change.abort();
  });
  const either = signal === undefined ? change.signal : AbortSignal.any([signal, change.signal]);
  // A change aborts the sleep, whose rejection is expected.
  await clock.sleep(mostMs, either).catch(() => undefined);
  stop();
  signal?.throwIfAborted();
}
