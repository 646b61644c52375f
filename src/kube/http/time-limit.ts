import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";

/** A constant abort reason: the default one captures a stack trace each time. */
const over = "over";

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /** Creates the reason to abort with when time is up. */
  readonly onTime: (limitMs: Millis) => Error;
  /** The caller's signal; `onAbort` converts its reason. */
  readonly signal?: AbortSignal | undefined;
  readonly onAbort: (reason: unknown) => Error;
}

/** A signal that aborts when time is up or the caller's signal aborts. `end` releases both. */
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

  /** Whether time is up. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Aborts early. */
  giveUp(reason: Error): void {
    this.#stop.abort(reason);
  }

  /** Restarts with another limit. */
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
/** How long a limit stays raised. */
const raisedForMs: Millis = minutes(1);

/**
 * The timeout of one attempt of an urgent request. It starts short, because a silently dead
 * connection must not use up a notice's time. A merely slow server has to be able to respond, so
 * the limit is twice the slowest response of the last minute, and doubles after a timeout.
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

  /** Records a timeout. Concurrent ones count once. */
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
 * Detects a peer that sends nothing for too long. Only the time spent waiting for it counts, not
 * that of a slow reader.
 */
export class SilenceGuard {
  readonly #options: SilenceGuardOptions;
  readonly #over = new AbortController();
  #waitingSinceMs: number | undefined;

  constructor(options: SilenceGuardOptions) {
    this.#options = options;
    this.#keep().catch(() => {});
  }

  /** Passes chunks through and measures how long each takes to arrive. */
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
   * Uses one timer for the whole stream instead of one per chunk. Ends when its sleep is aborted.
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
