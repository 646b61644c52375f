import type { Clock } from "../../contracts/clock.ts";
import {
  type Departure,
  type DepartureStatus,
  isPressing,
} from "../../core/departure/departure.ts";
import { runsAhead } from "../../core/next/evaluation.ts";
import { freshMemory, type Memory } from "../../core/next/memory.ts";
import type { AskedRequest } from "../../core/next/request.ts";
import type { EvaluationTime } from "../../core/next/scene.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { StatusWriter } from "./status-writer.ts";

/** What this process knows of one departure: as watched, as written, as remembered. */
export class OpenState {
  readonly #clock: Clock;
  readonly #statusWriter: StatusWriter;
  /** The spec as watched; its status may be older than `recorded`. */
  seen: Departure;
  policy: Policy;
  memory: Memory;
  /** When the API server last answered something about it (monotonic). */
  heardMs = Number.NEGATIVE_INFINITY;
  #number = 0;

  constructor(
    { departure, policy }: { readonly departure: Departure; readonly policy: Policy },
    { clock, statusWriter }: { readonly clock: Clock; readonly statusWriter: StatusWriter },
  ) {
    this.#clock = clock;
    this.#statusWriter = statusWriter;
    this.seen = departure;
    this.policy = policy;
    this.memory = freshMemory(this.nextTime());
  }

  /** The time of the next evaluation. */
  nextTime(): EvaluationTime {
    this.#number += 1;
    return { at: this.#clock.now(), ms: this.#clock.monotonic(), number: this.#number };
  }

  /** The number that the next evaluation will have. */
  get nextNumber(): number {
    return this.#number + 1;
  }

  hears(): void {
    this.heardMs = this.#clock.monotonic();
  }

  /** With the status as last written or read. */
  get recorded(): Departure {
    const { resourceVersion, status, finalizers } = this.#statusWriter.newest(this.seen);
    return { ...this.seen, resourceVersion, status, finalizers };
  }

  /** As it should stand, whether that is written or not. */
  get newest(): DepartureStatus {
    return this.memory.intended ?? this.recorded.status;
  }

  /**
   * As it is acted upon: under a notice, cordon and evictions do not wait for the status, and a
   * roll-back not for ever.
   */
  get effective(): Departure {
    const status = this.newest;
    const recorded = this.recorded;
    const isAhead = this.memory.isUndoneWithoutRecord || (runsAhead(status) && this.isPressing);
    return isAhead ? { ...recorded, status } : recorded;
  }

  get isPressing(): boolean {
    return isPressing(this.seen, this.#clock.now());
  }

  remember(more: Partial<Memory>): void {
    this.memory = { ...this.memory, ...more };
  }

  setAsked(key: string, asked: AskedRequest): void {
    this.remember({ asked: { ...this.memory.asked, [key]: asked } });
  }

  forgetAsked(key: string): void {
    const { [key]: _, ...asked } = this.memory.asked;
    this.remember({ asked });
  }
}
