import { type Clock, Wakeup } from "../contracts/clock.ts";
import type { NoticeSource } from "../contracts/cloud.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import { isLive } from "../core/departure/departure.ts";
import { capitalized } from "../core/reason/counted.ts";
import { seconds } from "../core/time/time.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import { ErrorLog } from "./agent-status.ts";
import type { NoticeReporter } from "./notice-reporter.ts";

export interface AcknowledgerOptions {
  readonly reporter: Pick<NoticeReporter, "look">;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "count">;
}

export interface Acknowledged {
  readonly source: Pick<NoticeSource, "cloud" | "acknowledge">;
  /** The active events that concern only this machine and are due now. */
  readonly events: () => readonly string[];
}

/** How often the Departure is read while one is followed. */
const lookEveryMs = seconds(2);

/**
 * Acknowledges events to the cloud once the node has no pods left, so that the cloud does not wait
 * longer. Once per event and process; repeating it after a restart has no effect.
 */
export class Acknowledger {
  readonly #options: AcknowledgerOptions;
  readonly #wakeup: Wakeup;
  readonly #troubles: ErrorLog;
  readonly #done = new Set<string>();
  #departure: string | undefined;
  #isDrained = false;

  constructor(options: AcknowledgerOptions) {
    this.#options = options;
    this.#wakeup = new Wakeup(options.clock);
    this.#troubles = new ErrorLog(options);
  }

  /** Follows the Departure of the reported notice; undefined to stop. */
  follow(departure: string | undefined): void {
    if (departure !== this.#departure) this.#isDrained = false;
    this.#departure = departure;
    this.#wakeup.wake();
  }

  /** Called when the agent itself has drained the node. */
  drained(): void {
    this.#isDrained = true;
    this.#wakeup.wake();
  }

  /** Runs until the signal aborts. */
  async run(cloud: Acknowledged, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const due = cloud.events().filter((id) => !this.#done.has(id));
      const isOpen = this.#departure !== undefined;
      if (isOpen && due.length > 0) await this.#tryTurn(cloud, due, signal);
      await this.#wakeup.sleep(isOpen ? lookEveryMs : undefined, signal);
    }
  }

  async #tryTurn(cloud: Acknowledged, due: readonly string[], signal: AbortSignal): Promise<void> {
    try {
      if (!(await this.#isNodeDrained(signal))) return;
    } catch (error) {
      if (!signal.aborted) this.#troubles.report("acknowledge", faultOf(error));
      return;
    }
    for (const id of due) await this.#acknowledge(cloud, id, signal);
  }

  async #acknowledge(
    { source }: Acknowledged,
    eventId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { log, metrics } = this.#options;
    const action = `${capitalized(source.cloud)}Acknowledge`;
    try {
      await source.acknowledge?.(eventId, signal);
      this.#done.add(eventId);
      metrics.count("lastcall_actions_total", { action, result: "Done" });
      log.info("acknowledged", { eventId, departure: this.#departure });
    } catch (error) {
      if (signal.aborted) return;
      metrics.count("lastcall_actions_total", { action, result: "Failed" });
      this.#troubles.report("acknowledge", faultOf(error));
      // A definite refusal is not retried.
      if (isLastcallError(error) && !error.retryable) this.#done.add(eventId);
    }
  }

  async #isNodeDrained(signal: AbortSignal): Promise<boolean> {
    if (this.#isDrained) return true;
    if (this.#departure === undefined) return false;
    const departure = await this.#options.reporter.look(this.#departure, signal);
    // Only a drained departure waits for its machine to be taken.
    this.#isDrained = departure?.status.phase === "Releasing" && departure.podsLeft === 0;
    if (departure === undefined || !isLive(departure)) this.#departure = undefined;
    return this.#isDrained;
  }
}

function faultOf(error: unknown): Error {
  return isLastcallError(error) ? error : new Error(messageOf(error));
}
