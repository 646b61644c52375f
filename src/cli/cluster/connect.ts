import type { BoardClock } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { KubeApi, KubeSender } from "../../contracts/kube-api.ts";
import { fieldsOf, instantOf, numberOf } from "../../core/json/json-field.ts";
import { between, type Instant, type Millis, millis, plus, seconds } from "../../core/time/time.ts";
import type { KubeAccess } from "../../kube/access/kube-access.ts";
import type { CommandIo } from "../command-line/command.ts";
import { version } from "../commands/version.ts";

export interface Connection {
  readonly api: KubeApi;
  /** The same access, for callers that contact something other than the API server. */
  readonly access: KubeAccess;
  /** The namespace of the context, or of this pod; `lastcall` if neither has one. */
  readonly namespace: string;
  close(): void;
}

/** Finds the cluster as kubectl does. Throws KUBECONFIG_INVALID. */
export async function connect(
  options: {
    readonly kubeconfig?: string | undefined;
    readonly context?: string | undefined;
    /** For a process that watches for as long as it runs. */
    readonly probesConnections?: boolean | undefined;
    /** Called when the server has not answered a probe for this long. */
    readonly onSilent?: ((silentMs: Millis) => void) | undefined;
    /** Called while requests wait because too many are in flight. */
    readonly onRush?: (() => void) | undefined;
    /** Called for each request of urgency `First`: the marks of a departing node. */
    readonly onFirst?: (() => void) | undefined;
    /** Aborts each request that has no signal of its own, for work that may stop at any point. */
    readonly signal?: AbortSignal | undefined;
  },
  io: Pick<CommandIo, "env" | "clock">,
): Promise<Connection> {
  const { loadKubeAccess } = await import("../../kube/access/load-kube-access.ts");
  const { HttpKubeApi } = await import("../../kube/http/http-api.ts");
  const { kubeconfig, context, probesConnections, onSilent, onRush, onFirst, signal } = options;
  const access = await loadKubeAccess({ kubeconfig, context, env: io.env });
  const userAgent = `lastcall/${version}`;
  const { clock } = io;
  const probing = { probesConnections, onSilent };
  const api = new HttpKubeApi({ access, clock, userAgent, ...probing, onRush, onFirst });
  return {
    api: signal === undefined ? api : endedBy(api, signal),
    access,
    namespace: io.env.POD_NAMESPACE ?? access.namespace ?? "lastcall",
    close: () => api.close(),
  };
}

function endedBy(api: KubeApi, signal: AbortSignal): KubeApi {
  return {
    send: (request) => api.send({ ...request, signal: request.signal ?? signal }),
    watch: (request) => api.watch(request),
  };
}

/** The longest that a board waits for a server that does not respond. */
const patienceMs = seconds(2);

/** The interval between requests to a demo cluster, which has its own time. */
const pauseMs = millis(500);

/** How often a sleeper checks its clock. */
const lookAgainMs = seconds(1);

/** A response states its time in whole seconds, and takes some time itself. */
const skewMs = seconds(5);

interface ToldTime extends BoardClock {
  readonly heardMs: number;
  /** Whether it is a demo, whose speed may change at any time, so its time is polled. */
  readonly isModel: boolean;
}

/**
 * The cluster's time: this computer's, unless the API server's clock shows that it is wrong. A
 * cluster of the demo reports its own time, and how fast it runs, with its version.
 */
export class ClusterClock implements Clock {
  readonly #api: KubeSender;
  readonly #clock: Clock;
  #told: ToldTime | undefined;

  constructor(api: KubeSender, clock: Clock) {
    this.#api = api;
    this.#clock = clock;
  }

  now(): Instant {
    if (this.#told === undefined) return this.#clock.now();
    const { at, rate, heardMs } = this.#told;
    return plus(at, millis(Math.round((this.#clock.monotonic() - heardMs) * rate)));
  }

  /** Whether the cluster's time is another than this computer's. */
  hasOwnTime(): boolean {
    return this.#told !== undefined;
  }

  /** How many times faster than this computer's clock it runs. */
  rate(): number {
    return this.#told?.rate ?? 1;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  sleep(span: Millis, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(span, signal);
  }

  async sleepUntil(at: Instant, signal?: AbortSignal): Promise<void> {
    for (;;) {
      // This computer's time, which follows its clock when the clock is set.
      if (this.#told === undefined) return this.#clock.sleepUntil(at, signal);
      const leftMs = between(this.now(), at);
      if (leftMs <= 0) return;
      // Meanwhile a demo may be paused or sped up, and this computer's clock corrected.
      const spanMs = Math.min(lookAgainMs, Math.ceil(leftMs / this.rate()));
      await this.#clock.sleep(millis(spanMs), signal);
    }
  }

  /** Asks once, as a board does: it shows this computer's time rather than nothing. */
  async find(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const late = this.#clock.sleep(patienceMs, over.signal).catch(() => undefined);
    await Promise.race([this.ask(AbortSignal.any([signal, over.signal])), late]);
    over.abort();
  }

  /** Follows a demo's own time until the signal aborts; calls back when its speed changes. */
  async run(onChange: () => void, signal: AbortSignal): Promise<void> {
    while (this.#told?.isModel === true && !signal.aborted) {
      await this.#clock.sleep(pauseMs, signal).catch(() => undefined);
      const before = this.rate();
      await this.ask(signal);
      if (this.rate() !== before) onChange();
    }
  }

  /**
   * Asks once, and waits for as long as a request may take. A cluster that reports no time has this
   * computer's time.
   */
  async ask(signal: AbortSignal): Promise<void> {
    try {
      const { body, serverAt } = await this.#api.send({ method: "GET", path: "/version", signal });
      const heardMs = this.#clock.monotonic();
      const { at: told, rate: given } = fieldsOf(fieldsOf(body).modelClock);
      const [at, rate] = [instantOf(told), numberOf(given)];
      if (at !== undefined && rate !== undefined && rate >= 0) {
        this.#told = { at, rate, heardMs, isModel: true };
      } else if (serverAt !== undefined && this.#told?.isModel !== true) {
        const isWrong = Math.abs(between(this.#clock.now(), serverAt)) > skewMs;
        this.#told = isWrong ? { at: serverAt, rate: 1, heardMs, isModel: false } : undefined;
      }
    } catch {
      // The watches report that the cluster is unreachable; its time stands still until it is back.
      if (signal.aborted || this.#told?.isModel !== true) return;
      const heardMs = this.#clock.monotonic();
      this.#told = { at: this.now(), rate: 0, heardMs, isModel: true };
    }
  }
}
