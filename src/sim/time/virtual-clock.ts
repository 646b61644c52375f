import type { Clock } from "../../contracts/clock.ts";
import { between, type Instant, type Millis, millis, minus, plus } from "../../core/time/time.ts";
import { assert } from "../../errors.ts";

/** A constant abort reason: the default one captures a stack trace each time. */
const replaced = "replaced";

/** Calls functions later, all with one sleep on a clock; drops the remaining ones when stopped. */
export class Timers {
  readonly #clock: Clock;
  readonly #timers = new TimerHeap();
  #sleeper: AbortController | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #nextOrder = 0;
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls a function after a delay; those due at the same instant are called in order. */
  after(span: Millis, act: () => void): void {
    if (this.#stopped) return;
    const dueAt = plus(this.#clock.now(), millis(Math.max(0, Math.ceil(span))));
    const timer: Timer = { dueAt, order: this.#nextOrder++, fire: act, cancelled: false };
    this.#timers.push(timer);
    if (dueAt < this.#wakesAt) this.#sleepUntil(dueAt);
  }

  stop(): void {
    this.#stopped = true;
    this.#sleeper?.abort(replaced);
  }

  #sleepUntil(at: Instant): void {
    this.#sleeper?.abort(replaced);
    const sleeper = new AbortController();
    this.#sleeper = sleeper;
    this.#wakesAt = at;
    const span = millis(Math.max(0, at - this.#clock.now()));
    const onWake = (): void => {
      if (!sleeper.signal.aborted) this.#fireDue();
    };
    // A sleeper is replaced if something earlier becomes due.
    void this.#clock.sleep(span, sleeper.signal).then(onWake, () => undefined);
  }

  #fireDue(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
    while (!this.#stopped && this.#isDue()) this.#timers.pop()?.fire();
    const next = this.#timers.first();
    if (next && !this.#stopped && next.dueAt < this.#wakesAt) this.#sleepUntil(next.dueAt);
  }

  #isDue(): boolean {
    const next = this.#timers.first();
    return next !== undefined && next.dueAt <= this.#clock.now();
  }
}

interface Timer {
  readonly dueAt: Instant;
  /** Timers due at the same instant fire in the order in which they were set. */
  readonly order: number;
  readonly fire: () => void;
  cancelled: boolean;
}

/** A binary heap of timers: the earliest comes out first. */
class TimerHeap {
  readonly #timers: Timer[] = [];

  get size(): number {
    return this.#timers.length;
  }

  first(): Timer | undefined {
    return this.#timers[0];
  }

  push(timer: Timer): void {
    const timers = this.#timers;
    let at = timers.length;
    timers.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = timers[parent] as Timer;
      if (!isBefore(timer, above)) break;
      timers[at] = above;
      at = parent;
    }
    timers[at] = timer;
  }

  pop(): Timer | undefined {
    const timers = this.#timers;
    const first = timers[0];
    const last = timers.pop();
    if (first === undefined || last === undefined || timers.length === 0) return first;
    this.#sink(last);
    return first;
  }

  #sink(timer: Timer): void {
    const timers = this.#timers;
    let at = 0;
    for (;;) {
      const child = this.#earlierChild(at);
      if (child === undefined || !isBefore(timers[child] as Timer, timer)) break;
      timers[at] = timers[child] as Timer;
      at = child;
    }
    timers[at] = timer;
  }

  #earlierChild(at: number): number | undefined {
    const left = 2 * at + 1;
    const [a, b] = [this.#timers[left], this.#timers[left + 1]];
    if (a === undefined) return undefined;
    return b !== undefined && isBefore(b, a) ? left + 1 : left;
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}

interface VirtualClockOptions {
  readonly startAt: Instant;
  /**
   * Resolves once all promise work has settled, so that only time can make progress:
   * `eventLoopTurn` of `src/runtime`, passed in because the model has no event loop of its own.
   */
  readonly settle: () => Promise<void>;
}

interface VirtualSleeper {
  readonly at: Instant;
  timer: Timer;
}

/**
 * Discrete-event time: it stands still until a caller runs it, and then jumps from timer to timer.
 * Between two jumps all promise work settles, so every run is the same. I/O must not take part: the
 * clock does not wait for it.
 */
export class VirtualClock implements Clock {
  readonly #startAt: Instant;
  readonly #settle: () => Promise<void>;
  readonly #timers = new TimerHeap();
  readonly #untilInstant = new Set<VirtualSleeper>();
  /** The wall clock's first value; later adjustments are added to it. */
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

  /** The wall clock is set forward; this only wakes those that sleep until an instant. */
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

  /** Lets time pass until `at`, inclusive; everything due by then has happened when it resolves. */
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

  /** Lets a duration pass. */
  advance(span: Millis): Promise<void> {
    return this.runUntil(plus(this.now(), span));
  }

  /** Lets time pass until `done` returns true, at most until `at`; returns whether it did. */
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
