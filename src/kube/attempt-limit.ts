import type { Clock } from "../contracts/clock.ts";
import { type Millis, millis, minutes, seconds } from "../core/time/time.ts";

const shortestMs: Millis = millis(2500);
const longestMs: Millis = seconds(30);
/** So long a limit stays raised after what has raised it. */
const raisedForMs: Millis = minutes(1);

/**
 * How long one attempt of urgent work is waited for. A connection that is dead without a word must not
 * cost a notice its time, so it begins short. A server that is merely slow must answer in the end and not
 * be asked for the same ever faster, so the limit is twice what the slowest answer of the last minute
 * took, and doubles where one did not come.
 */
export class AttemptLimit {
  readonly #clock: Pick<Clock, "monotonic">;
  #raised = { ms: shortestMs, atMs: 0 };

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get ms(): Millis {
    const { ms, atMs } = this.#raised;
    return this.#clock.monotonic() - atMs < raisedForMs ? ms : shortestMs;
  }

  /** An attempt that was waited for so long got no answer. Many at once count once. */
  unanswered(limitMs: Millis): void {
    this.#raiseTo(limitMs * 2);
  }

  answered(tookMs: number): void {
    if (tookMs * 2 > shortestMs) this.#raiseTo(tookMs * 2);
  }

  #raiseTo(ms: number): void {
    const now = this.#clock.monotonic();
    this.#raised = { ms: millis(Math.min(longestMs, Math.max(this.ms, ms))), atMs: now };
  }
}
