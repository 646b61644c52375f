import type { Clock } from "../../src/contracts/clock.ts";
import {
  between,
  type Instant,
  instant,
  type Millis,
  millis,
  plus,
} from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";

/** Real time at another speed: at 60, a minute passes every second, starting at `startAt`. */
export class ScaledClock implements Clock {
  readonly #startAt: Instant;
  readonly #speed: number;
  readonly #realStartMs: number;

  constructor(options: { readonly startAt: Instant; readonly speed: number }) {
    this.#startAt = options.startAt;
    this.#speed = options.speed;
    this.#realStartMs = realClock.monotonic();
  }

  now(): Instant {
    return instant(Math.floor(plus(this.#startAt, millis(this.monotonic()))));
  }

  monotonic(): number {
    return (realClock.monotonic() - this.#realStartMs) * this.#speed;
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return realClock.sleep(millis(span / this.#speed), signal);
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.sleep(between(this.now(), at), signal);
  }
}
