import type { Clock } from "../../contracts/clock.ts";
import type { PodIdentity } from "../../core/cluster/pod.ts";
import {
  type Departure,
  type DepartureStatus,
  type DrainCounts,
  mayHoldBudgets,
} from "../../core/departure/departure.ts";
import type { BudgetDemand } from "../../core/departure/drain-conflict.ts";
import { type PhaseChange, statusAfter, statusWithReason } from "../../core/departure/ledger.ts";
import { withLeftBehind } from "../../core/drain/drain-progress.ts";
import type { DrainStep } from "../../core/drain/drain-step.ts";
import { explainHeld } from "../../core/drain/explain-held.ts";
import { explain } from "../../core/reason/explain.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { type Instant, millis, plus } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";

/** Progress is written at most this often; what a phase ends with is always written. */
const progressEveryMs = 1000;

/** Where a write stands in a rush of notices. */
export type PlaceInRush = "Behind" | "Ahead";

type Change = (fresh: Departure) => DepartureStatus | undefined;

/**
 * The writes of one departure's status, one after another. Progress of a drain is written at its
 * own pace and beside the work; a phase change waits for its write and carries the newest counts.
 */
export class StatusWriter {
  readonly #executor: Executor;
  readonly #clock: Clock;
  #tail: Promise<unknown> = Promise.resolve();
  /** Of those that have not been answered. */
  readonly #hurries = new Set<AbortController>();
  #written: Departure | undefined;
  #unwritten: readonly PhaseChange[] = [];
  #companion: Change | undefined;
  #counts: DrainCounts | undefined;
  #demands: readonly BudgetDemand[] | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #writing = false;
  /** What was written last of the drain's progress. */
  #progress: string | undefined;

  constructor(tools: { readonly executor: Executor; readonly clock: Clock }) {
    this.#executor = tools.executor;
    this.#clock = tools.clock;
  }

  /**
   * Takes down what has happened, to be written with whatever is written next. For what must not
   * wait for a write, and is found out again by a controller that takes over before it.
   */
  writeLater(departure: Departure, change: PhaseChange): void {
    this.#written ??= departure;
    this.#unwritten = [...this.#unwritten, change];
  }

  /** Has this change asked for with whatever is written from now on. */
  accompany(change: Change): void {
    this.#companion = change;
  }

  /** Takes down what the drain asks of budgets, to be written with whatever is written next. */
  recordDemands(demands: readonly BudgetDemand[]): void {
    if (demands.length > 0) this.#demands ??= demands;
  }

  /**
   * As it was written or read last, which is newer than what a run has of it between two phases.
   */
  newest(departure: Departure): Departure {
    return this.#written ?? departure;
  }

  /**
   * Undefined when the Departure is gone. In a rush it stands back behind evictions. One that goes
   * ahead of those that wait pulls along the writes before it.
   */
  write(
    departure: Departure,
    change: Change,
    place: PlaceInRush = "Behind",
  ): Promise<Departure | undefined> {
    const hurry = new AbortController();
    this.#hurries.add(hurry);
    if (place === "Ahead") for (const one of this.#hurries) one.abort();
    const next = this.#tail
      .then(() => this.#record(departure, change, hurry.signal))
      .finally(() => this.#hurries.delete(hurry));
    this.#tail = next.catch(() => undefined);
    return next;
  }

  /** Writes a reason and its sentence into the status, in the phase that it is in. */
  setReason(departure: Departure, reason: Reason): Promise<Departure | undefined> {
    const message = explain(reason, {
      node: departure.node.name,
      deadlineAt: departure.deadlineAt,
    });
    return this.write(departure, ({ status }) =>
      status.reason === reason ? undefined : { ...status, reason, message },
    );
  }

  /** Writes a reason with what was found, into the timeline as well; undefined when it is gone. */
  report(
    departure: Departure,
    found: { readonly reason: Reason; readonly detail?: string | undefined },
  ): Promise<Departure | undefined> {
    const at = this.#clock.now();
    return this.write(departure, (fresh) => statusWithReason(fresh, { ...found, at }));
  }

  /** Writes down pods that went with the machine past the end of the drain. */
  async leftBehind(
    departure: Departure,
    pods: readonly PodIdentity[],
  ): Promise<{ readonly status: DepartureStatus }> {
    const newest = this.newest(departure);
    this.#counts = withLeftBehind(this.#counts ?? newest.status.drain, pods);
    return (await this.write(departure, ({ status }) => status)) ?? newest;
  }

  /**
   * Takes what is new of a step and writes it, unless that was done a moment ago or is under way:
   * then it gives when to come with the newest step again.
   */
  recordProgress(departure: Departure, step: DrainStep): Instant | undefined {
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
    // Progress is for people's eyes: a fault in writing it does not stop the drain.
    void this.write(departure, ({ status }) =>
      status.phase === "Draining" ? { ...status, reason, message } : undefined,
    )
      .catch((error: unknown) =>
        this.#executor.telemetry.log.warn("progress-not-written", { error: messageOf(error) }),
      )
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
    const { resourceVersion, status } = this.#written ?? departure;
    let waiting: readonly PhaseChange[] = [];
    const after = await this.#executor.record(
      { ...departure, resourceVersion, status },
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
}

/** One that the cluster knows of already, since an answer was lost, changes nothing. */
function withChange(departure: Departure, change: PhaseChange): Departure {
  return { ...departure, status: statusAfter(departure, change) ?? departure.status };
}
