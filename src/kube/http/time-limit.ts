import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";

/** A reason of our own: the default one takes a stack trace each time. */
const over = "over";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /** The reason to abort with when the time is up, whose length it is told. */
  readonly onTime: (limitMs: Millis) => Error;
  /** The caller's own signal and what to abort with when it does. */
  readonly signal?: AbortSignal | undefined;
  readonly onAbort: (reason: unknown) => Error;
}

/** A signal that aborts when the time is up or the caller's signal does; `end` releases both. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #stop = new AbortController();
  #over = new AbortController();
  #isUp = false;
  readonly #options: DeadlineOptions;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    this.signal = this.#stop.signal;
    if (options.signal?.aborted) this.#aborted();
    options.signal?.addEventListener("abort", this.#aborted);
    this.#count(options.limitMs);
  }

  /** Whether the time was up. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Ends before its time. */
  giveUp(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Another limit from now on, which counts from now. */
  renew(limitMs: Millis): void {
    this.#over.abort(over);
    this.#over = new AbortController();
    this.#count(limitMs);
  }

  end(): void {
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    this.#over.abort(over);
  }

  #count(limitMs: Millis): void {
    const { clock, onTime } = this.#options;
    clock.sleep(limitMs, this.#over.signal).then(
      () => {
        this.#isUp = !this.signal.aborted;
        this.#stop.abort(onTime(limitMs));
      },
      () => {},
    );
  }

  readonly #aborted = () => {
    this.#stop.abort(this.#options.onAbort(this.#options.signal?.reason));
  };
}

const shortestAttemptMs: Millis = millis(2500);
const longestAttemptMs: Millis = seconds(30);
/** So long a limit stays raised after what has raised it. */
const raisedForMs: Millis = minutes(1);

/**
 * How long one attempt of urgent work is waited for. A connection that is dead without a word must
 * not cost a notice its time, so it begins short. A server that is merely slow must answer in the
 * end and not be asked for the same ever faster, so the limit is twice what the slowest answer of
 * the last minute took, and doubles where one did not come.
 */
export class AttemptLimit {
  readonly #clock: Pick<Clock, "monotonic">;
  #raised = { ms: shortestAttemptMs, atMs: 0 };

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get ms(): Millis {
    const { ms, atMs } = this.#raised;
    return this.#clock.monotonic() - atMs < raisedForMs ? ms : shortestAttemptMs;
  }

  /** An attempt that was waited for so long got no answer. Many at once count once. */
  unanswered(limitMs: Millis): void {
    this.#raiseTo(limitMs * 2);
  }

  answered(tookMs: number): void {
    if (tookMs * 2 > shortestAttemptMs) this.#raiseTo(tookMs * 2);
  }

  #raiseTo(ms: number): void {
    const now = this.#clock.monotonic();
    this.#raised = { ms: millis(Math.min(longestAttemptMs, Math.max(this.ms, ms))), atMs: now };
  }
}

export interface SilenceGuardOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  readonly onSilent: () => void;
}

/**
 * Notices that a peer has said nothing for too long. Only the time in which somebody waits for it
 * counts: while a slow reader works on what came, nobody listens.
 */
export class SilenceGuard {
  readonly #options: SilenceGuardOptions;
  readonly #over = new AbortController();
  #waitingSinceMs: number | undefined;

  constructor(options: SilenceGuardOptions) {
    this.#options = options;
    this.#keep().catch(() => {});
  }

  /** Passes the chunks on, with a watch on the time each takes to come. */
  async *listen(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
    this.#waitingSinceMs = this.#options.clock.monotonic();
    for await (const chunk of chunks) {
      this.#waitingSinceMs = undefined;
      yield chunk;
      this.#waitingSinceMs = this.#options.clock.monotonic();
    }
  }

  end(): void {
    this.#over.abort();
  }

  /**
   * One sleeper for the whole stream, not one a chunk. Ends by the rejection of an aborted sleep.
   */
  async #keep(): Promise<void> {
    const { clock, limitMs, onSilent } = this.#options;
    for (let waitMs: Millis = limitMs; ; ) {
      await clock.sleep(waitMs, this.#over.signal);
      const silentMs =
        this.#waitingSinceMs === undefined ? 0 : clock.monotonic() - this.#waitingSinceMs;
      if (silentMs >= limitMs) return onSilent();
      waitMs = millis(limitMs - silentMs);
    }
  }
}
