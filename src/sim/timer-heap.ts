import type { Instant } from "../core/time/time.ts";

export interface Timer {
  readonly dueAt: Instant;
  /** Timers that are due at one instant ring in the order in which they were set. */
  readonly order: number;
  readonly ring: () => void;
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
