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

interface LaneRequest {
  readonly urgency: Urgency;
  readonly hurry?: AbortSignal | undefined;
  readonly dueAt?: Instant | undefined;
}

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

  /**
   * Resolves when the request may start, with the lane that it is to `leave` then, or rejects with
   * the signal's reason. One that waits for `Later` goes over to `Now` once `hurry` aborts.
   */
  async enter(asked: LaneRequest, signal: AbortSignal): Promise<Urgency> {
    signal.throwIfAborted();
    const isHurried = asked.urgency === "Later" && asked.hurry?.aborted === true;
    const urgency = isHurried ? "Now" : asked.urgency;
    // Where anybody waits there is no room.
    if (this.#waiting[urgency].size > 0 || !this.#hasCapacity(urgency)) {
      if (urgency !== "Later") this.#onRush?.();
      return this.#wait({ ...asked, urgency }, signal);
    }
    this.#underWay[urgency] += 1;
    return urgency;
  }

  leave(urgency: Urgency): void {
    this.#underWay[urgency] -= 1;
    this.#startAll();
  }

  #wait({ urgency, hurry, dueAt }: LaneRequest, signal: AbortSignal): Promise<Urgency> {
    return new Promise((resolve, reject) => {
      let lane = urgency;
      const start = (): void => {
        signal.removeEventListener("abort", abort);
        hurry?.removeEventListener("abort", change);
        this.#underWay[lane] += 1;
        resolve(lane);
      };
      const join = () => this.#waiting[lane].join(start, dueAt ?? Number.NEGATIVE_INFINITY);
      let leaveLine = join();
      const change = (): void => {
        leaveLine();
        lane = "Now";
        leaveLine = join();
        this.#startAll();
      };
      const abort = (): void => {
        leaveLine();
        hurry?.removeEventListener("abort", change);
        reject(signal.reason);
        // The last urgent one to give up ends the rush.
        this.#startAll();
      };
      signal.addEventListener("abort", abort, { once: true });
      if (lane === "Later") hurry?.addEventListener("abort", change, { once: true });
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
