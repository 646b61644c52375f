import type { Clock } from "../contracts/clock.ts";

/** A pass in which nothing has come to an end for longer hangs. */
const stillLimitMs = 2 * 60_000;
/**
 * A loop that has begun no pass for longer has stopped; it looks every ten minutes at the latest.
 */
const idleLimitMs = 15 * 60_000;

/** Whether the loops still turn. A replica that does not lead has nothing to turn and is well. */
export class Health {
  readonly #clock: Clock;
  #beganMs: number | undefined;
  #movedMs = 0;
  #endedMs: number | undefined;
  #synced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  passBegan(): void {
    this.#beganMs = this.#clock.monotonic();
    this.#movedMs = this.#beganMs;
    this.#endedMs = undefined;
  }

  /**
   * Something that the pass has waited for is over, well or ill. A slow API server makes a pass
   * long, which a restart would not mend.
   */
  passMoved(): void {
    this.#movedMs = this.#clock.monotonic();
  }

  passEnded(): void {
    this.#endedMs = this.#clock.monotonic();
  }

  /** The lead is gone: no pass is due any more. */
  stoodDown(): void {
    this.#beganMs = undefined;
    this.#endedMs = undefined;
  }

  watchesSynced(): void {
    this.#synced = true;
  }

  /** What is wrong, in a sentence; undefined when nothing is. */
  problem(): string | undefined {
    const nowMs = this.#clock.monotonic();
    if (this.#beganMs === undefined) return undefined;
    if (this.#endedMs === undefined && nowMs - this.#movedMs > stillLimitMs) {
      return `a pass of the controller has been stuck for ${Math.round((nowMs - this.#movedMs) / 1000)} s`;
    }
    if (this.#endedMs !== undefined && nowMs - this.#endedMs > idleLimitMs) {
      return `the controller has started no pass for ${Math.round((nowMs - this.#endedMs) / 1000)} s`;
    }
    return undefined;
  }

  ready(): boolean {
    return this.#synced;
  }
}
