import type { Urgency } from "../../contracts/kube-api.ts";
import type { Instant } from "../../core/time/time.ts";

/** From the most urgent to the least. */
const lanes = ["First", "Now", "Later"] as const;

/**
 * How many of a lane may be under way beside a few more urgent ones, and beside a crowd of them. A
 * server with a few cores is kept busy by few: more would only make each of them slow, the urgent
 * ones too. Beside a few it stays four of `Later`, since one that hangs must not hold up the rest.
 */
const besideFew = { First: Number.POSITIVE_INFINITY, Now: 8, Later: 4 } as const;
const besideCrowd = { ...besideFew, Later: 1 } as const;
const crowd = 16;

/**
 * Lets at most so many requests be under way, the urgent ones first, and within a lane the soonest
 * due. While any more urgent one is there, only a few of a lane run beside it: a server that is
 * asked for everything at once serves everything late.
 */
export class RequestLanes {
  readonly #most: number;
  readonly #underWay = { First: 0, Now: 0, Later: 0 };
  readonly #waiting = {
    First: new WaitingLine<() => void>(),
    Now: new WaitingLine<() => void>(),
    Later: new WaitingLine<() => void>(),
  };

  readonly #onRush: (() => void) | undefined;

  /** `onRush` is called whenever a request that is not for later has to wait. */
  constructor(most: number, onRush?: () => void) {
    this.#most = most;
    this.#onRush = onRush;
  }

  /** Resolves when the request may start, or rejects with the signal's reason. Then `leave` it. */
  async enter(
    { urgency, dueAt }: { readonly urgency: Urgency; readonly dueAt?: Instant | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    // Where anybody waits there is no room.
    if (this.#waiting[urgency].size > 0 || !this.#hasCapacity(urgency)) {
      if (urgency !== "Later") this.#onRush?.();
      await this.#wait({ urgency, dueAt }, signal);
      return;
    }
    this.#underWay[urgency] += 1;
  }

  leave(urgency: Urgency): void {
    this.#underWay[urgency] -= 1;
    this.#startAll();
  }

  #wait(
    { urgency, dueAt }: { readonly urgency: Urgency; readonly dueAt: Instant | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal.removeEventListener("abort", abort);
        this.#underWay[urgency] += 1;
        resolve();
      };
      const leaveLine = this.#waiting[urgency].join(start, dueAt ?? Number.NEGATIVE_INFINITY);
      const abort = (): void => {
        leaveLine();
        reject(signal.reason);
        // The last urgent one to give up ends the rush.
        this.#startAll();
      };
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #startAll(): void {
    for (const urgency of lanes) {
      const line = this.#waiting[urgency];
      while (line.size > 0 && this.#hasCapacity(urgency)) line.shift()?.();
    }
  }

  #hasCapacity(urgency: Urgency): boolean {
    const { First, Now, Later } = this.#underWay;
    if (First + Now + Later >= this.#most) return false;
    let ahead = 0;
    for (const one of lanes.slice(0, lanes.indexOf(urgency))) {
      ahead += this.#underWay[one] + this.#waiting[one].size;
    }
    if (ahead === 0) return true;
    const most = ahead < crowd ? besideFew : besideCrowd;
    return this.#underWay[urgency] < most[urgency];
  }
}

interface Place<T> {
  readonly item: T;
  readonly rank: number;
  /** Tells those of one rank apart: who came first. */
  readonly order: number;
}

/** Who waits, the lowest rank first and those of one rank in the order in which they came. */
class WaitingLine<T> {
  readonly #places: Place<T>[] = [];
  #joined = 0;

  get size(): number {
    return this.#places.length;
  }

  /** Gives back how to leave the line; whoever has left it already may. */
  join(item: T, rank: number): () => void {
    this.#joined += 1;
    const place = { item, rank, order: this.#joined };
    this.#places.splice(this.#indexOf(place), 0, place);
    return () => {
      const index = this.#indexOf(place);
      if (this.#places[index] === place) this.#places.splice(index, 1);
    };
  }

  /** Takes the first one out. */
  shift(): T | undefined {
    return this.#places.shift()?.item;
  }

  /** Where it stands, or would. */
  #indexOf({ rank, order }: Place<T>): number {
    let [from, to] = [0, this.#places.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const there = this.#places[middle] as Place<T>;
      const isBefore = there.rank < rank || (there.rank === rank && there.order < order);
      if (isBefore) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
