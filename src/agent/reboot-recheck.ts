import type { Clock } from "../contracts/clock.ts";
import { minutes } from "../core/time/time.ts";
import type { NoticeReporter } from "./notice-reporter.ts";

/** How long after its start the agent doubts; a kubelet reports a new boot within seconds. */
const doubtMs = minutes(2);
const firstLookMs = 1000;
/** At 1, 2, 4, 8 and 16 s after each other: for half a minute. */
const mostLooks = 5;

/**
 * Right after a reboot the Node shows the boot before until the kubelet has reported. A controller
 * that hears of a notice in that moment takes the agent for another machine and closes the
 * Departure. For as long as that may be, the agent looks again at what it has reported.
 */
export class RebootRecheck {
  readonly #reporter: Pick<NoticeReporter, "receptionOf">;
  readonly #clock: Clock;
  readonly #startedMs: number;
  #name: string | undefined;
  #looks = 0;
  #nextMs = 0;

  constructor(tools: {
    readonly reporter: Pick<NoticeReporter, "receptionOf">;
    readonly clock: Clock;
  }) {
    this.#reporter = tools.reporter;
    this.#clock = tools.clock;
    this.#startedMs = tools.clock.monotonic();
  }

  /** The notice was reported by this Departure; undefined: no notice stands any more. */
  reported(name: string | undefined): void {
    const nowMs = this.#clock.monotonic();
    const doubts = nowMs - this.#startedMs < doubtMs || this.#looks > 0;
    this.#name = doubts && this.#looks < mostLooks ? name : undefined;
    this.#nextMs = nowMs + firstLookMs * 2 ** this.#looks;
  }

  /** How long until the next look; undefined: there is none. */
  waitMs(): number | undefined {
    return this.#name === undefined ? undefined : this.#nextMs - this.#clock.monotonic();
  }

  /** Whether what was reported must be reported again. */
  async isRefuted(signal: AbortSignal): Promise<boolean> {
    const name = this.#name;
    if (name === undefined || this.#clock.monotonic() < this.#nextMs) return false;
    this.#looks += 1;
    this.reported(name);
    const reception = await this.#reporter.receptionOf(name, signal).catch(() => "Waiting");
    if (reception === "Settled") this.#name = undefined;
    return reception === "Mistaken";
  }
}
