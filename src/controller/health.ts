import type { Clock } from "../contracts/clock.ts";

/** A pass without progress for longer than this counts as hung. */
const stillLimitMs = 2 * 60_000;
/**
 * A loop that has started no pass for longer than this counts as stopped: it resyncs every ten
 * minutes.
 */
const idleLimitMs = 15 * 60_000;

/** Whether the loops are alive. A replica that does not lead has none and is healthy. */
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
   * Records progress: a request has ended, even if it failed. A slow API server makes a pass long,
   * which a restart would not fix.
   */
  passMoved(): void {
    this.#movedMs = this.#clock.monotonic();
  }

  passEnded(): void {
    this.#endedMs = this.#clock.monotonic();
  }

  /** We no longer lead, so no pass is due. */
  stoodDown(): void {
    this.#beganMs = undefined;
    this.#endedMs = undefined;
  }

  watchesSynced(): void {
    this.#synced = true;
  }

  /** The problem in a sentence; undefined if healthy. */
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
