import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "../contracts/clock.ts";
import { type Millis, millis, seconds } from "../core/time/time.ts";

/**
 * As bin/lastcall.js starts it. In a burst V8 then collects the whole heap every quarter of a
 * second, by threads of its own beside the one that works: half of the processor time.
 */
const thrifty = ["--optimize-for-size", "--heap-growing-percent=0"];
/** The whole heap is collected when it has grown by so much: without, 85 MiB became 240. */
const hasty = ["--no-optimize-for-size", "--heap-growing-percent=15"];

/** A rush that pauses for less goes on. */
const calmAfterMs: Millis = seconds(20);

export interface HeapPaceOptions {
  readonly clock: Clock;
  /** Ends it with the process. */
  readonly signal: AbortSignal;
  /** How a flag of V8 is set, and the whole heap collected; default: as Node does it. */
  readonly engine?: HeapEngine | undefined;
}

export interface HeapEngine {
  setFlag(flag: string): void;
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
  #rushedAtMs: number | undefined;

  constructor(options: HeapPaceOptions) {
    this.#options = options;
    this.#engine = options.engine ?? v8Engine;
  }

  /** There is a rush, now; called as often as one likes. */
  rush(): void {
    const isNew = this.#rushedAtMs === undefined;
    this.#rushedAtMs = this.#options.clock.monotonic();
    if (!isNew) return;
    for (const flag of hasty) this.#engine.setFlag(flag);
    // Where the process ends meanwhile, nothing has to be given back.
    this.#untilCalm(this.#rushedAtMs).catch(() => {});
  }

  async #untilCalm(beganAtMs: number): Promise<void> {
    const { clock, signal } = this.#options;
    let lastMs = beganAtMs;
    for (;;) {
      await clock.sleep(millis(lastMs + calmAfterMs - clock.monotonic()), signal);
      const newest = this.#rushedAtMs ?? lastMs;
      if (newest === lastMs) break;
      lastMs = newest;
    }
    this.#rushedAtMs = undefined;
    for (const flag of thrifty) this.#engine.setFlag(flag);
    this.#engine.collect();
  }
}

const v8Engine: HeapEngine = {
  setFlag: setFlagsFromString,
  collect() {
    // Node has no other way to ask for it once it runs.
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("globalThis.gc");
    // The last resort is what gives pages back: it shrinks the space of young objects as well.
    const how = { type: "major", execution: "sync", flavor: "last-resort" };
    if (typeof collect === "function") collect(how);
  },
};
