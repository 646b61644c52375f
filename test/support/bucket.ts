/**
 * A token bucket, as AWS uses to throttle: it holds at most `most` tokens, and gains `perSecond`.
 */
export class Bucket {
  readonly #most: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledMs: number | undefined;

  constructor(most: number, perSecond: number) {
    this.#most = most;
    this.#perSecond = perSecond;
    this.#tokens = most;
  }

  take(nowMs: number): boolean {
    const gained = ((nowMs - (this.#filledMs ?? nowMs)) / 1000) * this.#perSecond;
    this.#filledMs = nowMs;
    this.#tokens = Math.min(this.#most, this.#tokens + gained);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
