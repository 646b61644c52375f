import type { Clock } from "../contracts/clock.ts";
import type { KubeAnswer, KubeApi, KubeRequest, KubeWatchRequest } from "../contracts/kube-api.ts";
import { type Instant, instant, type Millis, millis, plus, seconds } from "../core/time/time.ts";

/** A `Date` header names whole seconds: on average, half a second has passed since. */
const halfSecondMs = 500;
/** Below this, the clocks count as one: an answer may have waited in a busy process. */
const toleranceMs: Millis = seconds(3);
/**
 * A difference that no drift makes between two answers: the server's clock was set, or another
 * server answers, whose clock is wrong.
 */
const stepMs: Millis = seconds(30);
/** How long an answer counts for the estimate. */
const windowMs: Millis = seconds(60);

interface Heard {
  /** The server's time less our monotonic time. */
  readonly aheadMs: number;
  readonly atMs: number;
}

/**
 * The API server's time, by the `Date` of its answers and our monotonic clock. The instants in its
 * objects (deletion, creation, notices) are compared with its own time, so that a wrong clock of
 * this machine, or a step of it, ends no grace period early. While both clocks agree within a few
 * seconds, it is the time of this machine, and a step of the server's clock counts for nothing: of
 * three witnesses, our clock and the time that has passed here contradict it. Behind a proxy that
 * sets `Date` itself, it is the proxy's.
 */
export class ServerClock implements Clock {
  readonly #own: Clock;
  #heard: readonly Heard[] = [];
  /** The largest of what was heard; undefined until then. */
  #aheadMs: number | undefined;
  /** Of the last answer, if its time was later than expected, which the next one has to confirm. */
  #doubted: number | undefined;

  constructor(own: Clock) {
    this.#own = own;
  }

  /** Takes the server's time from an answer that has just arrived. */
  hear(serverAt: Instant): void {
    const atMs = this.#own.monotonic();
    const recent = this.#heard.filter((one) => atMs - one.atMs < windowMs);
    const aheadMs = serverAt + halfSecondMs - atMs;
    if (this.#isContradicted(aheadMs, atMs)) return;
    const doubted = this.#doubted;
    this.#doubted = aheadMs - (this.now() - atMs) > toleranceMs ? aheadMs : undefined;
    const isConfirmed = doubted !== undefined && Math.abs(aheadMs - doubted) <= toleranceMs;
    if (this.#doubted !== undefined && !isConfirmed) return;
    // Of several, the largest counts: an answer can arrive late, never early.
    const last = recent.at(-1);
    if (last !== undefined && atMs - last.atMs < seconds(1) && last.aheadMs >= aheadMs) return;
    this.#heard = [...recent, { aheadMs, atMs }];
    this.#aheadMs = Math.max(...this.#heard.map((one) => one.aheadMs));
  }

  /** Whether it is a step that neither our clock nor the time that has passed here has made. */
  #isContradicted(aheadMs: number, atMs: number): boolean {
    const isAgreed = this.#aheadMs !== undefined && this.#offsetMs() === 0;
    return isAgreed && Math.abs(aheadMs - (this.now() - atMs)) > stepMs;
  }

  /** Whether the server's time is known. */
  isKnown(): boolean {
    return this.#aheadMs !== undefined;
  }

  now(): Instant {
    return plus(this.#own.now(), this.#offsetMs());
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(span, signal);
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.#own.sleepUntil(instant(at - this.#offsetMs()), signal);
  }

  #offsetMs(): Millis {
    if (this.#aheadMs === undefined) return millis(0);
    const offsetMs = Math.round(this.#own.monotonic() + this.#aheadMs - this.#own.now());
    return millis(Math.abs(offsetMs) > toleranceMs ? offsetMs : 0);
  }
}

/** An API whose answers set the clock that is returned with it. */
export function onServerTime(
  api: KubeApi,
  own: Clock,
): { readonly api: KubeApi; readonly clock: ServerClock } {
  const clock = new ServerClock(own);
  const send = async (request: KubeRequest): Promise<KubeAnswer> => {
    const answer = await api.send(request);
    // An error may be a proxy's own, with the time of its machine.
    if (answer.serverAt !== undefined && answer.status < 400) clock.hear(answer.serverAt);
    return answer;
  };
  const watch = (request: KubeWatchRequest) => api.watch(request);
  return { api: { send, watch }, clock };
}
