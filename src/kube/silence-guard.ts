import type { Clock } from "../contracts/clock.ts";
import { type Millis, millis } from "../core/time/time.ts";

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

  /** One sleeper for the whole stream, not one a chunk. Ends by the rejection of an aborted sleep. */
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
