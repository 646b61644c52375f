import type { Clock } from "../../contracts/clock.ts";
import type { KubeWatchEvent, KubeWatchRequest } from "../../contracts/kube-api.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time/time.ts";

export interface SilenceGuardOptions {
  readonly clock: Clock;
  readonly limitMs: () => Millis;
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
    for (let silentMs = 0; ; ) {
      // The limit may have become shorter by then.
      const waitMs = Math.min(limitMs() - silentMs, bookmarkLimitMs);
      await clock.sleep(millis(waitMs), this.#over.signal);
      silentMs = this.#waitingSinceMs === undefined ? 0 : clock.monotonic() - this.#waitingSinceMs;
      if (silentMs >= limitMs()) return onSilent();
    }
  }
}

/** Bookmarks come 59 to 61 s apart (Kubernetes 1.36). */
const bookmarkLimitMs = seconds(70);
/** One of two bookmarks may be skipped. */
const skippedBookmarkLimitMs = seconds(140);
/** A watch that is reopened delivers the changes that it missed at once. */
const missedWithinMs = seconds(1);

/** The server ends a watch after at most an hour (--min-request-timeout x 2). */
const longestWatchMs = minutes(60);
/**
 * How long past its own `timeoutSeconds` a server may keep a watch open before it counts as dead.
 */
const watchGraceMs = seconds(30);

type WatchOfPath = Pick<KubeWatchRequest, "path" | "query">;

/**
 * How long watches may be silent before they are reopened. The server skips a bookmark while
 * nothing in its cache is newer than what it has sent, so on a quiet server two may be 120 s apart,
 * and a limit of 70 s would keep reopening every watch. So a silence that hid nothing makes all
 * watches patient; one that hid a change makes them impatient again.
 */
export class WatchSilenceLimit {
  #bookmarkLimitMs: Millis = bookmarkLimitMs;
  /** Watches that were closed for being silent, by path, and have not been reopened. */
  readonly #closed = new Set<string>();

  limitMs({ query }: WatchOfPath): Millis {
    const timeoutSeconds = Number(query?.timeoutSeconds);
    const wholeMs = timeoutSeconds > 0 ? seconds(timeoutSeconds) : longestWatchMs;
    const longestMs = Math.min(wholeMs, longestWatchMs) + watchGraceMs;
    return millis(isBookmarked(query) ? Math.min(longestMs, this.#bookmarkLimitMs) : longestMs);
  }

  closed({ path, query }: WatchOfPath): void {
    if (!isBookmarked(query)) return;
    this.#closed.add(path);
    this.#bookmarkLimitMs = skippedBookmarkLimitMs;
  }

  /** Returns the function to call with each event of the watch. */
  opened({ path }: WatchOfPath, clock: Clock): (event: KubeWatchEvent) => void {
    const missesUntilMs = this.#closed.delete(path) ? clock.monotonic() + missedWithinMs : 0;
    return ({ type }) => {
      if (type === "BOOKMARK" || type === "ERROR" || clock.monotonic() > missesUntilMs) return;
      this.#bookmarkLimitMs = bookmarkLimitMs;
    };
  }
}

function isBookmarked(query: WatchOfPath["query"]): boolean {
  return query?.allowWatchBookmarks === "true";
}
