import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../contracts/clock.ts";
import { type Millis, seconds } from "../core/time/time.ts";

/**
 * As bin/lastcall.js starts it. In a burst V8 then collects the whole heap every quarter of a
 * second, by threads of its own beside the one that works: half of the processor time.
 */
const thrifty = ["--optimize-for-size", "--heap-growing-percent=0"];
/**
 * While requests wait for their turn, the heap may grow by so much, up to its double, before all of
 * it is collected. By 15 % that was every 0.4 s, and a quarter of the controller's processor time,
 * in a burst of 300 notices.
 */
const hastyMiB = 40;
const mostPercent = 100;
/**
 * When none waits any more, and what is left of a burst has time. It opens a connection for each
 * node that is drained, which take the memory that the heap has to give back. A large heap never
 * grows by more.
 */
const settledPercent = 15;

/** Requests that wait again within this time belong to the same rush. */
const settledAfterMs: Millis = seconds(1);
/** A rush that pauses for less continues. */
const calmAfterMs: Millis = seconds(20);
/** By then departures have ended, and what was kept of them is garbage. */
const overAfterMs: Millis = seconds(90);

export interface HeapPaceOptions {
  readonly clock: Clock;
  /** Ends it with the process. */
  readonly signal: AbortSignal;
  /** How a flag of V8 is set, and the whole heap collected; default: as Node does it. */
  readonly engine?: HeapEngine | undefined;
}

export interface HeapEngine {
  setFlag(flag: string): void;
  usedMiB(): number;
  collect(): void;
}

/**
 * Trades memory for processor time while much is to be done at once, and gives it back when that is
 * over. The process idles for hours and has to be small then; in a burst of notices each second of
 * a processor that the collector takes is one that evictions wait for.
 */
export class HeapPace {
  readonly #options: HeapPaceOptions;
  readonly #engine: HeapEngine;
  #pace: "Thrifty" | "Hasty" | "Settled" = "Thrifty";
  #rushedAtMs = 0;
  #stirredAtMs = 0;
  #growsByPercent = settledPercent;
  #isFollowed = false;

  constructor(options: HeapPaceOptions) {
    this.#options = options;
    this.#engine = options.engine ?? v8Engine;
  }

  /** Reports that requests have to wait; may be called as often as one likes. */
  rush(): void {
    this.#rushedAtMs = this.#options.clock.monotonic();
    if (this.#pace === "Hasty") return;
    const percent = Math.floor((hastyMiB / this.#engine.usedMiB()) * 100);
    this.#growsByPercent = Math.max(settledPercent, Math.min(mostPercent, percent));
    this.#take("Hasty", ["--no-optimize-for-size", growing(this.#growsByPercent)]);
    this.#follow();
  }

  /** Reports that a departure acts, for example cordons a node. */
  stir(): void {
    this.#stirredAtMs = this.#options.clock.monotonic();
    this.#follow();
  }

  #follow(): void {
    if (this.#isFollowed) return;
    this.#isFollowed = true;
    // If the process ends meanwhile, nothing has to be given back.
    this.#untilOver().catch(() => {});
  }

  async #untilOver(): Promise<void> {
    const { clock, signal } = this.#options;
    for (;;) {
      await clock.sleep(settledAfterMs, signal);
      const nowMs = clock.monotonic();
      const calmMs = nowMs - this.#rushedAtMs;
      if (Math.min(calmMs, nowMs - this.#stirredAtMs) >= overAfterMs) break;
      if (calmMs >= calmAfterMs && this.#pace !== "Thrifty") {
        this.#take("Thrifty", thrifty);
        this.#engine.collect();
      } else if (calmMs >= settledAfterMs && this.#pace === "Hasty") {
        this.#take("Settled", [growing(settledPercent)]);
        // A pause that grows with the heap, so only where it gives something back.
        if (this.#growsByPercent > settledPercent) this.#engine.collect();
      }
    }
    this.#isFollowed = false;
    this.#engine.collect();
  }

  #take(pace: "Thrifty" | "Hasty" | "Settled", flags: readonly string[]): void {
    this.#pace = pace;
    for (const flag of flags) this.#engine.setFlag(flag);
  }
}

function growing(percent: number): string {
  return `--heap-growing-percent=${percent}`;
}

const v8Engine: HeapEngine = {
  setFlag: setFlagsFromString,
  usedMiB: () => getHeapStatistics().used_heap_size / 2 ** 20,
  collect() {
    // Node has no other way to ask for it once it runs.
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("globalThis.gc");
    // The last resort is what gives pages back: it shrinks the space of young objects as well.
    const how = { type: "major", execution: "sync", flavor: "last-resort" };
    if (typeof collect === "function") collect(how);
  },
};
