import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../contracts/notice-feed.ts";
import { around } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Millis, minutes } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { ComputeClient } from "./compute-client.ts";
import { findInstanceRef } from "./compute-instance.ts";
import { PreemptionZone, type ZoneRef } from "./preemption-zone.ts";

export interface PreemptionFeedOptions {
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** From one look at a zone to the next. */
  readonly pollMs: Millis;
  /** The providerIDs of the nodes whose machines matter; asked before each round. */
  readonly machines: () => readonly string[];
}

/** A zone that fails is asked less and less often, down to this. */
const longestPauseMs: Millis = minutes(5);

interface Watched {
  readonly zone: PreemptionZone;
  failures: number;
  /** On the monotonic clock. */
  nextAt: number;
  isUnderWay: boolean;
}

/**
 * Preemptions as the zones' operations tell them, for fleets without the agent. One list a zone and
 * round; zones in which no machine matters are not asked, and none waits for another.
 */
export class PreemptionFeed implements NoticeFeed {
  readonly #options: PreemptionFeedOptions;

  constructor(options: PreemptionFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock, rng, pollMs } = this.#options;
    const zones = new Map<string, Watched>();
    const polls = new Set<Promise<void>>();
    while (!signal.aborted) {
      this.#follow(zones);
      for (const watched of zones.values()) {
        const poll = this.#pollIfDue(watched, listener, signal).finally(() => polls.delete(poll));
        polls.add(poll);
      }
      await clock.sleep(around(pollMs, rng), signal).catch(() => undefined);
    }
    await Promise.all(polls);
  }

  /** Takes up the zones that have machines now, and drops those that have none any more. */
  #follow(zones: Map<string, Watched>): void {
    const present = new Map(this.#options.machines().flatMap(zoneEntryOf));
    for (const key of zones.keys()) if (!present.has(key)) zones.delete(key);
    for (const [key, ref] of present) {
      if (zones.has(key)) continue;
      const zone = new PreemptionZone(ref, this.#options);
      zones.set(key, { zone, failures: 0, nextAt: 0, isUnderWay: false });
    }
  }

  async #pollIfDue(watched: Watched, listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock, pollMs } = this.#options;
    if (watched.isUnderWay || clock.monotonic() < watched.nextAt) return;
    watched.isUnderWay = true;
    try {
      await watched.zone.poll(listener, signal);
      watched.failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      listener.onTrouble(isLastcallError(error) ? error : unexpected(error));
      const pauseMs = Math.min(longestPauseMs, pollMs * 2 ** watched.failures);
      watched.failures += 1;
      watched.nextAt = clock.monotonic() + pauseMs;
    } finally {
      watched.isUnderWay = false;
    }
  }
}

function unexpected(error: unknown): LastcallError {
  return new LastcallError("NOTICE_UNREADABLE", `Cannot read preemptions: ${messageOf(error)}`);
}

function zoneEntryOf(providerID: string): readonly (readonly [string, ZoneRef])[] {
  const ref = findInstanceRef(providerID);
  if (ref === undefined) return [];
  const { project, zone } = ref;
  return [[`${project}/${zone}`, { project, zone }]];
}
