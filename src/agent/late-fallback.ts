import type { Clock } from "../contracts/clock.ts";
import type { NoticeCase } from "../core/notice.ts";
import type { Millis } from "../core/time.ts";
import { Bell } from "./bell.ts";
import type { Filed } from "./departure-desk.ts";
import type { Fallback } from "./fallback.ts";

type FallbackSide = Pick<Fallback, "heed" | "filed" | "withdrawn" | "run">;

/**
 * A fallback whose code is loaded when something is told to it for the first time: an agent idles
 * for weeks, and a controller has three seconds before the fallback acts.
 */
export class LateFallback implements FallbackSide {
  readonly #load: () => Promise<FallbackSide>;
  readonly #bell: Bell;
  #side: FallbackSide | undefined;
  /** What was told before it was there. */
  readonly #told: ((side: FallbackSide) => void)[] = [];

  constructor(load: () => Promise<FallbackSide>, clock: Clock) {
    this.#load = load;
    this.#bell = new Bell(clock);
  }

  heed(notice: NoticeCase | undefined, skewMs: Millis): void {
    const isFirst = this.#side === undefined && this.#told.length === 0;
    // That nothing stands is no news where nothing has stood.
    if (isFirst && notice === undefined) return;
    this.#tell((side) => side.heed(notice, skewMs));
  }

  filed(filed: Filed): void {
    this.#tell((side) => side.filed(filed));
  }

  withdrawn(name: string): void {
    this.#tell((side) => side.withdrawn(name));
  }

  /** Runs until the signal aborts. Rejects where the code cannot be loaded. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#told.length === 0) await this.#bell.wait(undefined, signal);
    if (signal.aborted) return;
    const side = await this.#load();
    this.#side = side;
    for (const tell of this.#told.splice(0)) tell(side);
    await side.run(signal);
  }

  #tell(what: (side: FallbackSide) => void): void {
    if (this.#side !== undefined) {
      what(this.#side);
      return;
    }
    this.#told.push(what);
    this.#bell.ring();
  }
}
