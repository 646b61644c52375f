import type { Clock } from "../contracts/clock.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import type { MachineNotice } from "../core/notice/notice.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import type { Fallback } from "./fallback.ts";
import type { Filed } from "./notice-reporter.ts";

type FallbackSide = Pick<Fallback, "handle" | "filed" | "withdrawn" | "run">;

export interface LateFallbackOptions {
  readonly load: () => Promise<FallbackSide>;
  readonly clock: Clock;
  readonly onTrouble: (error: unknown) => void;
}

/** Between two tries to load it. */
const restMs: Millis = seconds(1);

/**
 * A fallback whose code is loaded when something is told to it for the first time: an agent idles
 * for weeks, and a controller has three seconds before the fallback acts.
 */
export class LateFallback implements FallbackSide {
  readonly #options: LateFallbackOptions;
  readonly #wakeup: Wakeup;
  #side: FallbackSide | undefined;
  /** What was told before it was there. */
  readonly #told: Telling[] = [];

  constructor(options: LateFallbackOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
  }

  handle(notice: MachineNotice | undefined, skewMs: Millis): void {
    const isFirst = this.#side === undefined && this.#told.length === 0;
    // That nothing stands is no news where nothing has stood.
    if (isFirst && notice === undefined) return;
    // It comes with every look: of two in a row the latter counts.
    if (this.#told.at(-1)?.isHandled === true) this.#told.pop();
    this.#tell((side) => side.handle(notice, skewMs), true);
  }

  filed(filed: Filed): void {
    this.#tell((side) => side.filed(filed));
  }

  withdrawn(name: string): void {
    this.#tell((side) => side.withdrawn(name));
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#told.length === 0) await this.#wakeup.sleep(undefined, signal);
    const side = await this.#loaded(signal);
    if (side === undefined) return;
    this.#side = side;
    for (const { tell } of this.#told.splice(0)) tell(side);
    await side.run(signal);
  }

  /** Its agent tells the cluster meanwhile, whether it can be loaded or not. */
  async #loaded(signal: AbortSignal): Promise<FallbackSide | undefined> {
    const { load, clock, onTrouble } = this.#options;
    while (!signal.aborted) {
      try {
        return await load();
      } catch (error) {
        onTrouble(error);
        await clock.sleep(restMs, signal).catch(() => undefined);
      }
    }
    return undefined;
  }

  #tell(tell: Telling["tell"], isHandled = false): void {
    if (this.#side !== undefined) {
      tell(this.#side);
      return;
    }
    this.#told.push({ tell, isHandled });
    this.#wakeup.wake();
  }
}

interface Telling {
  readonly tell: (side: FallbackSide) => void;
  readonly isHandled: boolean;
}
