import type { BoardClock } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { fieldsOf, instantOf, numberOf } from "../../core/json/json-field.ts";
import { between, type Instant, type Millis, millis, plus, seconds } from "../../core/time/time.ts";

/** A board is not kept waiting longer by a server that does not answer. */
const patienceMs = seconds(2);
/** Between two questions to a cluster that has a time of its own. */
const pauseMs = millis(500);

/**
 * The time of the cluster: this computer's, but in a cluster of the demo, whose API server says
 * with its version what time it is there and how fast that goes.
 */
export class ClusterClock implements Clock {
  readonly #api: KubeSender;
  readonly #clock: Clock;
  #told: (BoardClock & { readonly heardMs: number }) | undefined;

  constructor(api: KubeSender, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  now(): Instant {
    if (this.#told === undefined) return this.#clock.now();
    const { at, rate, heardMs } = this.#told;
    return plus(at, millis(Math.round((this.#clock.monotonic() - heardMs) * rate)));
  }

  /** How many times faster than this computer's it goes. */
  rate(): number {
    return this.#told?.rate ?? 1;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(span, signal);
  }

  sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    return this.sleep(between(this.now(), at), signal);
  }

  /** Asks once, before anything is shown; a cluster that says nothing has this computer's time. */
  async find(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const late = this.#clock.sleep(patienceMs, over.signal).catch(() => undefined);
    await Promise.race([this.#ask(AbortSignal.any([signal, over.signal])), late]);
    over.abort();
  }

  /** Keeps to a cluster's own time until the signal aborts; tells when it goes faster or slower. */
  async run(onChange: () => void, signal: AbortSignal): Promise<void> {
    while (this.#told !== undefined && !signal.aborted) {
      await this.#clock.sleep(pauseMs, signal).catch(() => undefined);
      const before = this.rate();
      await this.#ask(signal);
      if (this.rate() !== before) onChange();
    }
  }

  async #ask(signal: AbortSignal): Promise<void> {
    try {
      const { body } = await this.#api.send({ method: "GET", path: "/version", signal });
      const { at: told, rate: given } = fieldsOf(fieldsOf(body).modelClock);
      const [at, rate] = [instantOf(told), numberOf(given)];
      if (at === undefined || rate === undefined || rate < 0) return;
      this.#told = { at, rate, heardMs: this.#clock.monotonic() };
    } catch {
      // Whoever watches the cluster says that it is away; its time stands until it is back.
      if (signal.aborted || this.#told === undefined) return;
      this.#told = { at: this.now(), rate: 0, heardMs: this.#clock.monotonic() };
    }
  }
}
