import type { Urgency } from "../contracts/kube-api.ts";

/** So few keep the ledger going while hundreds of evictions wait, and cost these next to nothing. */
const laterInRush = 4;

interface Waiter {
  readonly start: () => void;
}

/**
 * Lets at most so many requests be under way, those of `Now` first. While any of these is there,
 * only a few of `Later` run beside them: a server that is asked for everything at once serves
 * everything late.
 */
export class RequestLanes {
  readonly #most: number;
  readonly #underWay = { Now: 0, Later: 0 };
  readonly #waiting = { Now: new Set<Waiter>(), Later: new Set<Waiter>() };

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
        // The last of `Now` to give up ends the rush.
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
    for (const urgency of ["Now", "Later"] as const) {
      for (const waiter of this.#waiting[urgency]) {
        if (!this.#hasRoom(urgency)) break;
        waiter.start();
      }
    }
  }

  #hasRoom(urgency: Urgency): boolean {
    const { Now, Later } = this.#underWay;
    if (Now + Later >= this.#most) return false;
    const isRush = Now > 0 || this.#waiting.Now.size > 0;
    return urgency === "Now" || !isRush || Later < laterInRush;
  }
}
