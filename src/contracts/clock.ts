import type { Instant, Millis } from "../core/time/time.ts";
import type { Fleet, FleetChange } from "./cluster.ts";

/** Wall-clock time for deadlines, monotonic time for measuring. */
export interface Clock {
  now(): Instant;
  /** Milliseconds since an arbitrary start; never decreases. */
  monotonic(): number;
  /** Resolves after `span`, or rejects with the signal's reason as soon as it aborts. */
  sleep(span: Millis, signal?: AbortSignal): Promise<void>;
  /**
   * Sleeps until an instant of wall-clock time. If that clock is set forward meanwhile, resolves
   * within a second of reaching the instant; if it is set back, resolves after the original span.
   */
  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void>;
}

type SleepTime = { readonly span: Millis } | { readonly until: Instant };

/** A constant abort reason: the default one captures a stack trace each time. */
const awake = "awake";

/**
 * What a loop sleeps on: it wakes up on `wake` or when its time is up, whichever comes first. A
 * `wake` between two sleeps ends the next sleep at once, so that none is missed.
 */
export class Wakeup {
  readonly #clock: Clock;
  #isDue = false;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#isDue = true;
    this.#end?.();
  }

  /**
   * Returns what ended the sleep; without a span only `wake` does. An abort ends it as well and
   * does not reject.
   */
  sleep(span: Millis | undefined, signal: AbortSignal): Promise<"Woken" | "Time"> {
    return this.#sleep(span === undefined ? undefined : { span }, signal);
  }

  /** Sleeps until an instant. Rejects with the signal's reason when it aborts. */
  async sleepUntil(until: Instant | undefined, signal: AbortSignal): Promise<"Woken" | "Time"> {
    signal.throwIfAborted();
    const time = until === undefined ? undefined : { until };
    const woken = await this.#sleep(time, signal);
    signal.throwIfAborted();
    return woken;
  }

  async #sleep(time: SleepTime | undefined, signal: AbortSignal): Promise<"Woken" | "Time"> {
    if (!this.#isDue && !signal.aborted) await this.#rest(time, signal);
    const woken = this.#isDue ? "Woken" : "Time";
    this.#isDue = false;
    return woken;
  }

  async #rest(time: SleepTime | undefined, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const end = () => ended.abort(awake);
    this.#end = end;
    signal.addEventListener("abort", end, { once: true });
    try {
      if (time === undefined) await aborted(ended.signal);
      else if ("until" in time) await this.#clock.sleepUntil(time.until, ended.signal);
      else await this.#clock.sleep(time.span, ended.signal);
    } catch (error) {
      if (!ended.signal.aborted) throw error;
    } finally {
      this.#end = undefined;
      signal.removeEventListener("abort", end);
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}

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
