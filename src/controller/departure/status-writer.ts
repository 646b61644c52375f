import type { Clock } from "../../contracts/clock.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import type { PodIdentity } from "../../core/cluster/pod.ts";
import {
  type Departure,
  type DepartureStatus,
  type DrainCounts,
  hasFinalizer,
  isLive,
  isNoticed,
  mayHoldBudgets,
} from "../../core/departure/departure.ts";
import type { BudgetDemand } from "../../core/departure/drain-reason.ts";
import { type PhaseChange, statusAfter, statusWithReason } from "../../core/departure/ledger.ts";
import { withLeftBehind } from "../../core/drain/drain-progress.ts";
import { type DrainStep, explainHeld } from "../../core/drain/drain-step.ts";
import { explain, type Reason } from "../../core/reason/reason.ts";
import { type Instant, type Millis, millis, minutes, plus } from "../../core/time/time.ts";
import { isLastcallError, messageOf } from "../../errors.ts";
import type { DepartureWriter } from "../departure-writer.ts";

/** Progress is written at most this often. The end of a phase is always written. */
const progressEveryMs = 1000;

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
 * Writes the status of one departure, one write at a time. Progress of a drain is rate-limited and
 * written in the background; a phase change waits for its write, which includes the newest counts.
 */
export class StatusWriter {
  readonly #writer: DepartureWriter;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly #clock: Clock;
  #tail: Promise<unknown> = Promise.resolve();
  /** The controllers that let pending writes take turns with evictions. */
  readonly #hurries = new Set<AbortController>();
  #written: Departure | undefined;
  #unwritten: readonly PhaseChange[] = [];
  #companion: Change | undefined;
  #counts: DrainCounts | undefined;
  #demands: readonly BudgetDemand[] | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #guardAgainMs = Number.NEGATIVE_INFINITY;
  #writing = false;
  /** The last progress written. */
  #progress: string | undefined;

  constructor(options: StatusWriterOptions) {
    this.#writer = options.writer;
    this.#telemetry = options;
    this.#clock = options.clock;
  }

  /**
   * Adds a change to the next write. For changes that must not wait for a write, and that a new
   * leader would detect again.
   */
  writeLater(departure: Departure, change: PhaseChange): void {
    this.#written ??= departure;
    this.#unwritten = [...this.#unwritten, change];
  }

  /** Applies this change with every write from now on. */
  accompany(change: Change): void {
    this.#companion = change;
  }

  /** Adds what the drain demands of budgets to the next write. */
  recordDemands(demands: readonly BudgetDemand[]): void {
    if (demands.length > 0) this.#demands ??= demands;
  }

  /**
   * The departure as last written or read, which may be newer than the run's copy.
   */
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

  /** Sets the reason and message of the current phase. */
  setReason(departure: Departure, reason: Reason): Promise<Departure | undefined> {
    const message = explain(reason, {
      node: departure.node.name,
      deadlineAt: departure.deadlineAt,
    });
    return this.write(departure, ({ status }) =>
      status.reason === reason ? undefined : { ...status, reason, message },
    );
  }

  /** Adds a reason to status and timeline; undefined if the Departure is gone. */
  report(
    departure: Departure,
    found: { readonly reason: Reason; readonly detail?: string | undefined },
  ): Promise<Departure | undefined> {
    const at = this.#clock.now();
    return this.write(departure, (fresh) => statusWithReason(fresh, { ...found, at }));
  }

  /** Records pods that were lost with the machine after the end of the drain. */
  async leftBehind(
    departure: Departure,
    pods: readonly PodIdentity[],
  ): Promise<{ readonly status: DepartureStatus }> {
    const newest = this.newest(departure);
    this.#counts = withLeftBehind(this.#counts ?? newest.status.drain, pods);
    return (await this.write(departure, ({ status }) => status)) ?? newest;
  }

  /**
   * Writes the progress of a step, at most once a second. If it is too early, returns when to call
   * again with the newest step. `onWritten` is called after a write that succeeded.
   */
  recordProgress(
    departure: Departure,
    step: DrainStep,
    onWritten: () => void,
  ): Instant | undefined {
    this.#counts = step.counts;
    const held = explainHeld(step.blocked);
    const progress = JSON.stringify([step.counts, held]);
    if (progress === this.#progress) return undefined;
    const nowMs = this.#clock.monotonic();
    const restMs = this.#writing ? progressEveryMs : this.#writtenAtMs + progressEveryMs - nowMs;
    if (restMs > 0) return plus(this.#clock.now(), millis(restMs));
    this.#progress = progress;
    this.#writtenAtMs = nowMs;
    this.#writing = true;
    const reason: Reason = held === undefined ? "DrainRunning" : "DrainBlocked";
    const message = explain(reason, { node: departure.node.name, detail: held });
    // Progress only informs people: a failed write does not stop the drain.
    void this.write(departure, ({ status }) =>
      status.phase === "Draining" ? { ...status, reason, message } : status,
    )
      .then(onWritten)
      .catch((error: unknown) => {
        this.#progress = undefined;
        this.#telemetry.log.warn("progress-not-written", { error: messageOf(error) });
      })
      .finally(() => {
        this.#writing = false;
      });
    return undefined;
  }

  async #record(
    departure: Departure,
    change: Change,
    hurry: AbortSignal,
  ): Promise<Departure | undefined> {
    const hasTime = !isNoticed(departure);
    if (hasTime) await this.#guard(this.#written ?? departure, hurry);
    const { resourceVersion, status, finalizers } = this.#written ?? departure;
    let waiting: readonly PhaseChange[] = [];
    const after = await this.#writer.record(
      { ...departure, resourceVersion, status, finalizers },
      (fresh) => {
        waiting = this.#unwritten;
        const caughtUp = waiting.reduce(withChange, fresh);
        const drain = this.#counts ?? caughtUp.status.drain;
        const held = this.#demands ?? caughtUp.status.demands;
        const demands = mayHoldBudgets(caughtUp.status.phase) ? held : undefined;
        const now = { ...caughtUp, status: { ...caughtUp.status, drain, demands } };
        const own = change(now) ?? (waiting.length > 0 ? now.status : undefined);
        return this.#companion?.({ ...now, status: own ?? now.status }) ?? own;
      },
      hurry,
    );
    this.#written = after;
    this.#unwritten = this.#unwritten.slice(waiting.length);
    return after;
  }

  /**
   * Adds the finalizer: before the first status of a departure that has time, so that what is done
   * from then on is undone even if somebody deletes it. A refusal delays nothing.
   */
  async #guard(departure: Departure, hurry: AbortSignal): Promise<void> {
    const nowMs = this.#clock.monotonic();
    if (hasFinalizer(departure) || nowMs < this.#guardAgainMs) return;
    this.#guardAgainMs = nowMs + guardAgainMs;
    try {
      this.#written = (await this.#writer.guard(departure, hurry)) ?? this.#written;
    } catch (error) {
      const { log, metrics } = this.#telemetry;
      const code = isLastcallError(error) ? error.code : "UNEXPECTED";
      metrics.count("lastcall_errors_total", { code });
      const { name } = departure;
      log.warn("finalizer-not-added", { departure: name, code, error: messageOf(error) });
    }
  }
}

/** Applies a change unless the cluster already has it, after a lost response. */
function withChange(departure: Departure, change: PhaseChange): Departure {
  return { ...departure, status: statusAfter(departure, change) ?? departure.status };
}

/** How long an action yields to cordons at most: traffic has to be moved away as well. */
const longestBehindMs: Millis = millis(300);

/** The cordons of all runs that have been requested but not answered. */
export class PendingCordons {
  readonly #clock: Clock;
  #count = 0;
  /** Several cordons were pending at once, and not all have been answered. */
  #isBurst = false;
  #allAnswered = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a cordon as pending until it is answered. */
  async during<T>(cordon: () => Promise<T>): Promise<T> {
    this.#count += 1;
    if (this.#count > 1) this.#isBurst = true;
    try {
      return await cordon();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) {
        this.#isBurst = false;
        this.#allAnswered.resolve();
        this.#allAnswered = Promise.withResolvers();
      }
    }
  }

  /**
   * Resolves when no cordon is pending, or after a while: in a burst of notices, actions would take
   * the CPU time that the cordons need. A single cordon is not delayed by them.
   */
  async answered(signal: AbortSignal): Promise<void> {
    if (!this.#isBurst) return;
    const over = new AbortController();
    const late = this.#clock.sleep(longestBehindMs, AbortSignal.any([signal, over.signal]));
    // Once the race is decided, a rejection of the other promise would have no handler.
    late.catch(() => undefined);
    try {
      await Promise.race([this.#allAnswered.promise, late]);
    } finally {
      over.abort();
    }
  }
}
