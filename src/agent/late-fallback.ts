import type { Clock } from "../contracts/clock.ts";
import { Wakeup } from "../contracts/wakeup.ts";
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

/** Between two tries to load it. */
const restMs: Millis = seconds(1);

/**
 * A fallback whose code is loaded when it is called for the first time: an agent idles
 * for weeks, and a controller has three seconds before the fallback acts.
 */
export class LateFallback implements FallbackSide {
  readonly #options: LateFallbackOptions;
  readonly #wakeup: Wakeup;
  #side: FallbackSide | undefined;
  /** What was called for before it was loaded. */
  readonly #calls: Call[] = [];

  constructor(options: LateFallbackOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
  }

  handle(notice: MachineNotice | undefined, skewMs: Millis): void {
    const isFirst = this.#side === undefined && this.#calls.length === 0;
    // That there is no notice is no news where there has been none.
    if (isFirst && notice === undefined) return;
    // Every look calls this: of two calls in a row the latter counts.
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

  /** Its agent reports to the cluster meanwhile, whether it can be loaded or not. */
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
