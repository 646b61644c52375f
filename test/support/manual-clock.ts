import type { Clock } from "../../src/contracts/clock.ts";
import { between, type Instant, instant, type Millis } from "../../src/core/time/time.ts";

interface Sleeper {
  readonly wakeMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test advances it. */
export class ManualClock implements Clock {
  readonly #startAt: Instant;
  #elapsedMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startAt: number = Date.UTC(2026, 10, 20)) {
    this.#startAt = instant(startAt);
  }

  now(): Instant {
    return instant(this.#startAt + this.#elapsedMs);
  }

  monotonic(): number {
    return this.#elapsedMs;
  }

  /** The number of current sleepers. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = () => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const wake = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const sleeper: Sleeper = { wakeMs: this.#elapsedMs + Math.max(0, span), wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.sleep(between(this.now(), at), signal);
  }

  /** Lets `span` pass: wakes each sleeper at its time and lets it act before the next one. */
  async advance(span: number): Promise<void> {
    const untilMs = this.#elapsedMs + span;
    await settle();
    while (this.#wakeNext(untilMs)) await settle();
    this.#elapsedMs = untilMs;
    await settle();
  }

  /** Advances to the time of the next sleeper and wakes it; returns false if there is none. */
  step(): boolean {
    return this.#wakeNext(Number.POSITIVE_INFINITY);
  }

  /** Lets time pass without letting anybody act, like a process that was suspended. */
  freezeFor(span: number): void {
    this.#elapsedMs += span;
  }

  #wakeNext(untilMs: number): boolean {
    const next = this.#next(untilMs);
    if (next === undefined) return false;
    this.#elapsedMs = Math.max(this.#elapsedMs, next.wakeMs);
    this.#sleepers.delete(next);
    next.wake();
    return true;
  }

  #next(untilMs: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (sleeper.wakeMs <= untilMs && (first === undefined || sleeper.wakeMs < first.wakeMs)) {
        first = sleeper;
      }
    }
    return first;
  }
}

/** Lets all work in memory that is ready run; it does not wait for timers or sockets. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
