import type { Clock } from "../contracts/clock.ts";
import { type Instant, type Millis, millis, plus } from "../core/time/time.ts";
import { type Timer, TimerHeap } from "./timer-heap.ts";

/** Does things later, by one sleeper on a clock however many there are; forgets all when stopped. */
export class Timetable {
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
    const timer: Timer = { dueAt, order: this.#nextOrder++, ring: act, cancelled: false };
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
      if (!sleeper.signal.aborted) this.#ringDue();
    };
    // A sleeper that is woken early is replaced by one that wakes earlier.
    void this.#clock.sleep(span, sleeper.signal).then(onWake, () => undefined);
  }

  #ringDue(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
    while (!this.#stopped && this.#isDue()) this.#timers.pop()?.ring();
    const next = this.#timers.first();
    if (next && !this.#stopped && next.dueAt < this.#wakesAt) this.#sleepUntil(next.dueAt);
  }

  #isDue(): boolean {
    const next = this.#timers.first();
    return next !== undefined && next.dueAt <= this.#clock.now();
  }
}
