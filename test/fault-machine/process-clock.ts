import type { Clock } from "../../src/contracts/clock.ts";
import { type Instant, instant, type Millis, millis } from "../../src/core/time/time.ts";

/** What a dead process waits for: it does not even unwind. */
function never(): Promise<never> {
  return new Promise(() => {});
}

/**
 * The clock of one process: its own wall time, which may be off and may step, and the processor,
 * which may stop for a while. After its death nothing that sleeps here wakes up.
 */
export class ProcessClock implements Clock {
  readonly #base: Clock;
  readonly #sleepers = new Set<() => void>();
  #offsetMs = 0;
  #paused: PromiseWithResolvers<void> | undefined;
  #isDead = false;

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
    if (this.#isDead) await never();
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
    for (const wake of [...this.#sleepers]) wake();
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = undefined;
  }

  die(): void {
    this.#isDead = true;
    this.resume();
  }

  /** Resolves when the process runs; every answer and every timer passes here. */
  async awake(): Promise<void> {
    while (this.#paused !== undefined) await this.#paused.promise;
    if (this.#isDead) await never();
  }

  /** Sleeps, but no longer than until the wall clock is set. */
  async #untilStep(span: Millis, signal: AbortSignal | undefined): Promise<void> {
    let onStep = (): void => {};
    const stepped = new Promise<void>((resolve) => {
      onStep = resolve;
    });
    this.#sleepers.add(onStep);
    try {
      await Promise.race([this.sleep(span, signal), stepped]);
      signal?.throwIfAborted();
    } finally {
      this.#sleepers.delete(onStep);
    }
  }
}
