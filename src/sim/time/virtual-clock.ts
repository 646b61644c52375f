import type { Clock } from "../../contracts/clock.ts";
import { between, type Instant, type Millis, millis, minus, plus } from "../../core/time/time.ts";
import { assert } from "../../errors.ts";
import { type Timer, TimerHeap } from "./timers.ts";

interface VirtualClockOptions {
  readonly startAt: Instant;
  /**
   * Resolves once all promise work has come to rest, so that nothing can go on but by time:
   * `eventLoopTurn` of `src/runtime`, handed in because the model has no event loop of its own.
   */
  readonly settle: () => Promise<void>;
}

interface InstantSleeper {
  readonly at: Instant;
  timer: Timer;
}

/**
 * Discrete-event time: it stands still until a caller runs it, and then jumps from timer to timer.
 * Between two jumps all promise work comes to rest, so a run is the same every time it is run. I/O
 * must not take part: the clock does not wait for it.
 */
export class VirtualClock implements Clock {
  readonly #startAt: Instant;
  readonly #settle: () => Promise<void>;
  readonly #timers = new TimerHeap();
  readonly #untilInstant = new Set<InstantSleeper>();
  /** By the wall as it was at first; what it was set forward since comes on top. */
  #nowAt: Instant;
  #steppedMs = millis(0);
  #nextOrder = 0;
  #running = false;

  constructor(options: VirtualClockOptions) {
    this.#startAt = options.startAt;
    this.#nowAt = options.startAt;
    this.#settle = options.settle;
  }

  now(): Instant {
    return plus(this.#nowAt, this.#steppedMs);
  }

  monotonic(): number {
    return between(this.#startAt, this.#nowAt);
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return this.#sleep(span, signal);
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.#sleep(between(this.now(), at), signal, at);
  }

  /** The wall clock is set forward; only those wake earlier by that who sleep until an instant. */
  setForward(span: Millis): void {
    this.#steppedMs = millis(this.#steppedMs + span);
    for (const sleeper of this.#untilInstant) {
      sleeper.timer.cancelled = true;
      sleeper.timer = this.#set(between(this.now(), sleeper.at), sleeper.timer.fire);
    }
  }

  #sleep(span: Millis, signal: AbortSignal | undefined, at?: Instant): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const timer = this.#set(span, () => {
        this.#untilInstant.delete(sleeper);
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      const sleeper = { at: at ?? this.now(), timer };
      if (at !== undefined) this.#untilInstant.add(sleeper);
      const onAbort = (): void => {
        this.#untilInstant.delete(sleeper);
        sleeper.timer.cancelled = true;
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Lets time pass until `at`, inclusive; everything that is due by then has happened after. */
  async runUntil(until: Instant): Promise<void> {
    const at = minus(until, this.#steppedMs);
    assert(!this.#running, "a virtual clock is run by one caller at a time");
    this.#running = true;
    try {
      await this.#settle();
      while (this.#fireNext(at)) await this.#settle();
      if (at > this.#nowAt) this.#nowAt = at;
    } finally {
      this.#running = false;
    }
  }

  /** Lets a span of time pass. */
  advance(span: Millis): Promise<void> {
    return this.runUntil(plus(this.now(), span));
  }

  /** Lets time pass until `done` says so, at most until `at`; gives back whether it did. */
  async runUntilDone(done: () => boolean, at: Instant): Promise<boolean> {
    await this.runUntil(this.now());
    while (!done()) {
      const dueAt = this.nextDueAt();
      if (dueAt === undefined || dueAt > at) return false;
      await this.runUntil(dueAt);
    }
    return true;
  }

  /** When the next timer fires, if there is one. */
  nextDueAt(): Instant | undefined {
    const dueAt = this.#nextTimerAt();
    return dueAt && plus(dueAt, this.#steppedMs);
  }

  #nextTimerAt(): Instant | undefined {
    while (this.#timers.first()?.cancelled) this.#timers.pop();
    return this.#timers.first()?.dueAt;
  }

  #set(span: Millis, fire: () => void): Timer {
    const dueAt = plus(this.#nowAt, Math.max(0, Math.ceil(span)) as Millis);
    const timer = { dueAt, order: this.#nextOrder++, fire, cancelled: false };
    this.#timers.push(timer);
    return timer;
  }

  /** Jumps to the next instant at which something is due and fires all its timers. */
  #fireNext(limitAt: Instant): boolean {
    const dueAt = this.#nextTimerAt();
    if (dueAt === undefined || dueAt > limitAt) return false;
    this.#nowAt = dueAt;
    while (this.#nextTimerAt() === dueAt) this.#timers.pop()?.fire();
    return true;
  }
}
