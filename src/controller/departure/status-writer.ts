import type { Clock } from "../../contracts/clock.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import {
  type Departure,
  type DepartureStatus,
  hasFinalizer,
  isLive,
  isNoticed,
  isUnderWay,
} from "../../core/departure/departure.ts";
import { minutes } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import type { DepartureWriter } from "../departure-writer.ts";

/** A finalizer that is refused is tried again after this. */
const guardAgainMs = minutes(1);

/** Whether a write yields to pending evictions in a burst of notices or takes turns with them. */
export type PlaceInRush = "Behind" | "Between";

type Change = (fresh: Departure) => DepartureStatus | undefined;

interface StatusWriterOptions extends Pick<Telemetry, "log" | "metrics"> {
  readonly writer: DepartureWriter;
  readonly clock: Clock;
}

/**
 * Writes the status of one departure, one write at a time. Two write it: what the departure should
 * be, and what its actions do, which accompanies every write.
 */
export class StatusWriter {
  readonly #writer: DepartureWriter;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly #clock: Clock;
  #tail: Promise<unknown> = Promise.resolve();
  /** The controllers that let pending writes take turns with evictions. */
  readonly #hurries = new Set<AbortController>();
  #written: Departure | undefined;
  #companion: Change | undefined;
  #guardAgainMs = Number.NEGATIVE_INFINITY;
  /** Why the finalizer could not be added. */
  #unguarded: { readonly error: unknown } | undefined;

  constructor(options: StatusWriterOptions) {
    this.#writer = options.writer;
    this.#telemetry = options;
    this.#clock = options.clock;
  }

  /** Applies this change with every write from now on. */
  accompany(change: Change): void {
    this.#companion = change;
  }

  /** The departure as last written or read; the one passed in before that. */
  newest(departure: Departure): Departure {
    return this.#written ?? departure;
  }

  /**
   * Writes a change; undefined if the Departure is gone. During a burst it yields to evictions. A
   * write `Between` them takes the writes before it along.
   */
  write(
    departure: Departure,
    change: Change,
    place: PlaceInRush = "Behind",
  ): Promise<Departure | undefined> {
    const hurry = new AbortController();
    this.#hurries.add(hurry);
    if (place === "Between") for (const one of this.#hurries) one.abort();
    const next = this.#tail
      .then(() => this.#record(departure, change, hurry.signal))
      .finally(() => this.#hurries.delete(hurry));
    this.#tail = next.then(
      (after) => this.#guardLater(after),
      () => undefined,
    );
    return next;
  }

  /**
   * Under a notice, the finalizer follows the first status, as that follows the evictions. It
   * delays no write that waits already.
   */
  async #guardLater(written: Departure | undefined): Promise<void> {
    if (written === undefined || !isLive(written) || this.#hurries.size > 0) return;
    const hurry = new AbortController();
    this.#hurries.add(hurry);
    await this.#guard(written, hurry.signal);
    this.#hurries.delete(hurry);
  }

  async #record(
    departure: Departure,
    change: Change,
    hurry: AbortSignal,
  ): Promise<Departure | undefined> {
    const hasTime = !isNoticed(departure);
    const guarded = hasTime ? await this.#guard(this.newest(departure), hurry) : undefined;
    const { resourceVersion, status, finalizers } = this.newest(departure);
    const after = await this.#writer.record(
      { ...(guarded ?? departure), resourceVersion, status, finalizers },
      (fresh) => {
        const own = change(fresh);
        if (own !== undefined && starts(fresh, own)) this.#mustBeGuarded();
        return this.#companion?.({ ...fresh, status: own ?? fresh.status }) ?? own;
      },
      hurry,
    );
    this.#written = after;
    return after;
  }

  /**
   * Adds the finalizer: before the first status of a departure that has time, so that what is done
   * from then on is undone even if somebody deletes it. Returns the Departure with it, which
   * somebody may have changed meanwhile. A refusal delays no notice, and nothing that is under way.
   */
  async #guard(departure: Departure, hurry: AbortSignal): Promise<Departure | undefined> {
    const nowMs = this.#clock.monotonic();
    if (hasFinalizer(departure)) this.#unguarded = undefined;
    if (hasFinalizer(departure) || nowMs < this.#guardAgainMs) return undefined;
    this.#guardAgainMs = nowMs + guardAgainMs;
    this.#unguarded = undefined;
    try {
      const guarded = await this.#writer.guard(departure, hurry);
      this.#written = guarded ?? this.#written;
      return guarded;
    } catch (error) {
      this.#unguarded = { error };
      const { log, metrics } = this.#telemetry;
      const code = isLastcallError(error) ? error.code : "UNEXPECTED";
      metrics.count("lastcall_errors_total", { code });
      const { name } = departure;
      log.warn("finalizer-not-added", { departure: name, code, error: messageOf(error) });
      return undefined;
    }
  }

  /** Throws why the finalizer was refused. */
  #mustBeGuarded(): void {
    if (this.#unguarded !== undefined) throw this.#unguarded.error;
  }
}

/**
 * Whether a write starts what a plan or a person wants. If somebody deleted that without its
 * finalizer while its machine is deleted, a dying node would be uncordoned.
 */
function starts(before: Departure, status: DepartureStatus): boolean {
  return !isNoticed(before) && !isUnderWay(before) && isUnderWay({ status });
}
