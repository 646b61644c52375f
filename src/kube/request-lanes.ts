import type { Urgency } from "../contracts/kube-api.ts";

/** From the most urgent to the least. */
const lanes = ["First", "Now", "Later"] as const;

/**
 * How many of a lane may be under way beside more urgent ones. A server with a few cores is kept
 * busy by few: more would only make each of them slow, the urgent ones too.
 */
const besideUrgent = { First: Number.POSITIVE_INFINITY, Now: 8, Later: 4 } as const;

interface Waiter {
  readonly start: () => void;
}

/**
 * Lets at most so many requests be under way, the urgent ones first. While any more urgent one is
 * there, only a few of a lane run beside it: a server that is asked for everything at once serves
 * everything late.
 */
export class RequestLanes {
  readonly #most: number;
  readonly #underWay = { First: 0, Now: 0, Later: 0 };
  readonly #waiting = {
    First: new Set<Waiter>(),
    Now: new Set<Waiter>(),
    Later: new Set<Waiter>(),
  };

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves when the request may start, or rejects with the signal's reason. Then `leave` it. */
  async enter(urgency: Urgency, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Whoever waits in the lane was there first.
    if (this.#waiting[urgency].size > 0 || !this.#hasRoom(urgency)) {
      await this.#wait(urgency, signal);
      return;
    }
    this.#underWay[urgency] += 1;
  }

  leave(urgency: Urgency): void {
    this.#underWay[urgency] -= 1;
    this.#startAll();
  }

  #wait(urgency: Urgency, signal: AbortSignal): Promise<void> {
    const lane = this.#waiting[urgency];
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        lane.delete(waiter);
        reject(signal.reason);
        // The last urgent one to give up ends the rush.
        this.#startAll();
      };
      const waiter = {
        start: () => {
          lane.delete(waiter);
          signal.removeEventListener("abort", abort);
          this.#underWay[urgency] += 1;
          resolve();
        },
      };
      lane.add(waiter);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #startAll(): void {
    for (const urgency of lanes) {
      for (const waiter of this.#waiting[urgency]) {
        if (!this.#hasRoom(urgency)) break;
        waiter.start();
      }
    }
  }

  #hasRoom(urgency: Urgency): boolean {
    const { First, Now, Later } = this.#underWay;
    if (First + Now + Later >= this.#most) return false;
    const moreUrgent = lanes.slice(0, lanes.indexOf(urgency));
    const isRush = moreUrgent.some((one) => this.#underWay[one] + this.#waiting[one].size > 0);
    return !isRush || this.#underWay[urgency] < besideUrgent[urgency];
  }
}
