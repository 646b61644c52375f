import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { MachineNotice } from "../core/notice/notice.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import type { Fallback } from "./fallback.ts";
import type { ReportedNotice } from "./notice-reporter.ts";

type FallbackSide = Pick<Fallback, "handle" | "reported" | "withdrawn" | "run">;

export interface LateFallbackOptions {
  readonly load: () => Promise<FallbackSide>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** The pause between attempts to load the code. */
const restMs: Millis = seconds(1);

/**
 * A fallback whose code is loaded on the first call, because an agent idles for weeks. Loading
 * takes less than the three seconds that a controller has before the fallback acts.
 */
export class LateFallback implements FallbackSide {
  readonly #options: LateFallbackOptions;
  readonly #wakeup: Wakeup;
  #side: FallbackSide | undefined;
  /** The calls that arrived before the code was loaded. */
  readonly #calls: Call[] = [];

  constructor(options: LateFallbackOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
  }

  handle(notice: MachineNotice | undefined, skewMs: Millis): void {
    const isFirst = this.#side === undefined && this.#calls.length === 0;
    // Without an earlier notice, the absence of one is no change.
    if (isFirst && notice === undefined) return;
    // Called for every reading: of consecutive calls only the last one counts.
    if (this.#calls.at(-1)?.isHandled === true) this.#calls.pop();
    this.#call((side) => side.handle(notice, skewMs), true);
  }

  reported(reported: ReportedNotice): void {
    this.#call((side) => side.reported(reported));
  }

  withdrawn(name: string): void {
    this.#call((side) => side.withdrawn(name));
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#calls.length === 0) await this.#wakeup.sleep(undefined, signal);
    const side = await this.#loaded(signal);
    if (side === undefined) return;
    this.#side = side;
    for (const { make } of this.#calls.splice(0)) make(side);
    await side.run(signal);
  }

  /** Loads the code. The agent reports to the cluster meanwhile, even if loading fails. */
  async #loaded(signal: AbortSignal): Promise<FallbackSide | undefined> {
    const { load, clock, onError } = this.#options;
    while (!signal.aborted) {
      try {
        return await load();
      } catch (error) {
        onError(error);
        await clock.sleep(restMs, signal).catch(() => undefined);
      }
    }
    return undefined;
  }

  #call(make: Call["make"], isHandled = false): void {
    if (this.#side !== undefined) {
      make(this.#side);
      return;
    }
    this.#calls.push({ make, isHandled });
    this.#wakeup.wake();
  }
}

interface Call {
  readonly make: (side: FallbackSide) => void;
  readonly isHandled: boolean;
}
