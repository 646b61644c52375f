import type { Clock } from "../../src/contracts/clock.ts";
import { type Instant, instant, type Millis, millis } from "../../src/core/time/time.ts";

/**
 * The clock of one process: its own wall time, which may be off and may step, and the processor,
 * which may stop for a while. After its death nothing that sleeps here wakes up normally.
 */
export class ProcessClock implements Clock {
  readonly #base: Clock;
  readonly #sleepers = new Set<AbortController>();
  #offsetMs = 0;
  #paused: PromiseWithResolvers<void> | undefined;
  #death: Error | undefined;

  constructor(base: Clock, offsetMs: number) {
    this.#base = base;
    this.#offsetMs = offsetMs;
  }

  now(): Instant {
    return instant(this.#base.now() + this.#offsetMs);
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  async sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    if (this.#death !== undefined) throw this.#death;
    await this.#base.sleep(span, signal);
    await this.awake();
  }

  async sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    const latestMs = this.monotonic() + Math.max(0, at - this.now());
    for (;;) {
      const spanMs = Math.min(at - this.now(), latestMs - this.monotonic());
      if (spanMs <= 0) break;
      await this.#untilStep(millis(spanMs), signal);
    }
    await this.awake();
  }

  /** The wall clock is set: sleeps until an instant are counted again. */
  step(byMs: number): void {
    this.#offsetMs += byMs;
    for (const sleeper of [...this.#sleepers]) sleeper.abort(stepped);
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  die(): void {
    this.#death = new Error("the process was killed");
    this.resume();
  }

  /** Resolves when the process runs; every answer and every timer passes here. */
  async awake(): Promise<void> {
    while (this.#paused !== undefined) await this.#paused.promise;
    if (this.#death !== undefined) throw this.#death;
  }

  /** Sleeps, but no longer than until the wall clock is set. */
  async #untilStep(span: Millis, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const sleeper = new AbortController();
    const onAbort = (): void => sleeper.abort(stepped);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#sleepers.add(sleeper);
    try {
      await this.sleep(span, sleeper.signal);
    } catch (error) {
      if (error !== stepped) throw error;
      signal?.throwIfAborted();
    } finally {
      this.#sleepers.delete(sleeper);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

const stepped = "stepped";
