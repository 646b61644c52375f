import type { Clock } from "../../contracts/clock.ts";
import { type Instant, type Millis, millis, plus } from "../../core/time/time.ts";

/** Calls functions later, all by one sleep on a clock; drops those that are left when stopped. */
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

  /** Does something once a span has passed; what is due at one instant is done in order. */
  after(span: Millis, act: () => void): void {
    if (this.#stopped) return;
    const dueAt = plus(this.#clock.now(), millis(Math.max(0, Math.ceil(span))));
    const timer: Timer = { dueAt, order: this.#nextOrder++, fire: act, cancelled: false };
    this.#timers.push(timer);
    if (dueAt < this.#wakesAt) this.#sleepUntil(dueAt);
  }

  stop(): void {
    this.#stopped = true;
    this.#sleeper?.abort();
  }

  #sleepUntil(at: Instant): void {
    this.#sleeper?.abort();
    const sleeper = new AbortController();
    this.#sleeper = sleeper;
    this.#wakesAt = at;
    const span = millis(Math.max(0, at - this.#clock.now()));
    const onWake = (): void => {
      if (!sleeper.signal.aborted) this.#fireDue();
    };
    // A sleeper that is woken early is replaced by one that wakes earlier.
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

export interface Timer {
  readonly dueAt: Instant;
  /** Timers that are due at one instant fire in the order in which they were set. */
  readonly order: number;
  readonly fire: () => void;
  cancelled: boolean;
}

/** A binary heap of timers: the earliest comes out first. */
export class TimerHeap {
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
