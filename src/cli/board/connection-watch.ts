import type { ClusterConnection } from "../../board/stream.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type { KubeSender } from "../../contracts/kube-api.ts";
import { type Instant, seconds } from "../../core/time/time.ts";
import { type LastcallError, messageOf } from "../../errors.ts";

/** While the server is away it is asked so often whether it is back. */
const probeMs = seconds(1);
/** Longer than any pause between two attempts of a watch: silence for so long is well. */
const quietMs = seconds(12);

export interface ConnectionWatchOptions {
  readonly api: KubeSender;
  readonly clock: Clock;
  readonly onChange: () => void;
}

interface Outage {
  readonly sinceAt: Instant;
  readonly lastMs: number;
  readonly problem: string;
}

/** Whether the cluster answers, by what its watches go through. */
export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions;
  #isSynced = false;
  #trouble: Outage | undefined;

  constructor(options: ConnectionWatchOptions) {
    this.#options = options;
  }

  state(): ClusterConnection {
    if (this.#trouble !== undefined) {
      const { sinceAt, problem } = this.#trouble;
      return { kind: "Away", sinceAt, problem };
    }
    return this.#isSynced ? { kind: "Live" } : { kind: "Connecting" };
  }

  /** A watch has failed, and will be tried again. */
  onError(error: LastcallError): void {
    const { clock, onChange } = this.#options;
    const sinceAt = this.#trouble?.sinceAt ?? clock.now();
    this.#trouble = { sinceAt, lastMs: clock.monotonic(), problem: error.message };
    onChange();
  }

  /** Until the signal aborts; calls back when the cluster is there, and after each absence. */
  async run(fleet: Fleet, onLive: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    await fleet.synced(signal).catch(() => undefined);
    this.#isSynced = !signal.aborted;
    this.#options.onChange();
    let wasLive = false;
    while (!signal.aborted) {
      if (this.#trouble !== undefined && (await this.#isBack(fleet, signal))) {
        this.#trouble = undefined;
        this.#options.onChange();
      }
      const isLive = this.state().kind === "Live";
      if (isLive && !wasLive) await onLive();
      wasLive = isLive;
      await clock.sleep(probeMs, signal).catch(() => undefined);
    }
  }

  /** Every watch has been heard since, or none has failed for long; and the server answers. */
  async #isBack(fleet: Fleet, signal: AbortSignal): Promise<boolean> {
    const { api, clock } = this.#options;
    const sinceMs = clock.monotonic() - (this.#trouble?.lastMs ?? 0);
    const isHeard = fleet.silences().every(({ ms }) => ms < sinceMs);
    if (!isHeard && sinceMs < quietMs) return false;
    try {
      const answer = await api.send({ method: "GET", path: "/version", signal });
      return answer.status === 200;
    } catch (error) {
      if (!signal.aborted && this.#trouble !== undefined) {
        this.#trouble = { ...this.#trouble, problem: messageOf(error) };
      }
      return false;
    }
  }
}
