import type { Clock } from "../contracts/clock.ts";

/** A pass that takes longer hangs. */
const passLimitMs = 2 * 60_000;
/** A loop that has begun no pass for longer has stopped; it looks every ten minutes at the latest. */
const idleLimitMs = 15 * 60_000;

/** Whether the loops still turn. A replica that does not lead has nothing to turn and is well. */
export class Health {
  readonly #clock: Clock;
  #beganMs: number | undefined;
  #endedMs: number | undefined;
  #synced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  passBegan(): void {
    this.#beganMs = this.#clock.monotonic();
    this.#endedMs = undefined;
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
    if (this.#endedMs === undefined && nowMs - this.#beganMs > passLimitMs) {
      return `the rotation has been in one pass for ${Math.round((nowMs - this.#beganMs) / 1000)} s`;
    }
    if (this.#endedMs !== undefined && nowMs - this.#endedMs > idleLimitMs) {
      return `the rotation has begun no pass for ${Math.round((nowMs - this.#endedMs) / 1000)} s`;
    }
    return undefined;
  }

  ready(): boolean {
    return this.#synced;
  }
}
