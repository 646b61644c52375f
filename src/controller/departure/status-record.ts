import {
  type Departure,
  type DepartureStatus,
  isNoticed,
  isUnderWay,
} from "../../core/departure/departure.ts";
import { isSameJson } from "../../core/json/json-field.ts";
import { runsAhead } from "../../core/next/evaluation.ts";
import { freshMemory, inFlightOf } from "../../core/next/memory.ts";
import { isHurried, longestRecordPause } from "../../core/next/retry-pause.ts";
import { type DepartureScene, isAway } from "../../core/next/scene.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import type { DepartureOptions } from "./departure-options.ts";
import type { OpenState } from "./open-state.ts";
import { failingSince, faultOf, type Refusals } from "./refusals.ts";
import type { StatusWriter } from "./status-writer.ts";

/** Progress is written at most this often, and for this long the status yields to evictions. */
const progressEveryMs: Millis = seconds(1);

/** How many writes without an answer are remembered. */
const mostUnanswered = 8;

export interface StatusRecordOptions {
  readonly options: DepartureOptions;
  readonly state: OpenState;
  readonly statusWriter: StatusWriter;
  readonly refusals: Refusals;
  /** Ends when the departure is closed. */
  readonly signal: AbortSignal;
  readonly onWritten: () => void;
  /** What was decided is dropped, because somebody has changed the Departure meanwhile. */
  readonly onDropped: () => void;
  /** Write again after this time. */
  readonly onLater: (span: Millis) => void;
  readonly onLeaseLost: () => void;
  /** The Departure no longer exists. */
  readonly onGone: () => void;
  /** The start could not be recorded: it has to be planned again. */
  readonly onUnstarted: (error: unknown) => void;
}

/** Brings the status as it should stand into the cluster, one write at a time. */
export class StatusRecord {
  readonly #options: StatusRecordOptions;
  readonly #openedMs: number;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  #unwritten: DepartureScene["unwritten"];
  /** What everything was decided on: the status as opened, or as last written or met here. */
  #known: DepartureStatus;
  /** What was sent since the last answer, the newest first: each may have arrived. */
  #unanswered: readonly DepartureStatus[] = [];
  #faults = 0;
  /** When the last write failed, and how long it then rests (monotonic). */
  #failed: { readonly atMs: number; readonly restMs: Millis } | undefined;
  #writtenMs = Number.NEGATIVE_INFINITY;

  constructor(options: StatusRecordOptions) {
    this.#options = options;
    this.#openedMs = options.options.clock.monotonic();
    this.#known = options.state.recorded.status;
  }

  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Why it could not be written, and since when. */
  get unwritten(): DepartureScene["unwritten"] {
    return this.#unwritten;
  }

  /**
   * Notes what somebody else has written, and a write of an action or of the finalizer has met:
   * everything is decided again on it.
   */
  seeOthers(): void {
    const { state, onDropped } = this.#options;
    const { status } = state.recorded;
    if (status === this.#known || this.#isWriting) return;
    const isOurs = [this.#known, ...this.#unanswered].some((one) => isSameStatus(one, status));
    this.#known = status;
    if (isOurs) return;
    this.#forget();
    onDropped();
  }

  /** What is on its way still arrives. */
  #forget(): void {
    const { state } = this.#options;
    const asked = inFlightOf(state.memory);
    state.memory = { ...freshMemory(state.nextTime()), asked };
  }

  /** Writes what is not written, unless it is to wait. */
  write(): void {
    const { options, state, onLater, onWritten } = this.#options;
    const { intended } = state.memory;
    if (intended === undefined || this.#isWriting) return;
    const waitMs = Math.max(
      ...[this.#behindEvictionsMs(intended), this.#restOfProgressMs(intended), this.#restMs()],
    );
    if (waitMs > 0) {
      onLater(millis(waitMs));
      return;
    }
    this.#isWriting = true;
    this.#writtenMs = options.clock.monotonic();
    this.#writing = this.#record().finally(() => {
      this.#isWriting = false;
      onWritten();
    });
  }

  /** Resolves when no write is on its way any more. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** A notice that arrives meanwhile shortens the rest after a fault. */
  #restMs(): number {
    const { options, state } = this.#options;
    if (this.#failed === undefined) return 0;
    const { atMs, restMs } = this.#failed;
    const { clock } = options;
    const mostMs = isHurried(state.seen, clock.now()) ? this.#longestPause() : restMs;
    return atMs + Math.min(restMs, mostMs) - clock.monotonic();
  }

  #restOfProgressMs(intended: DepartureStatus): number {
    const { options, state } = this.#options;
    if (!isProgress(state.recorded.status, intended)) return 0;
    return this.#writtenMs + progressEveryMs - options.clock.monotonic();
  }

  /** Under a notice the status waits until the first evictions are asked for, a second at most. */
  #behindEvictionsMs(intended: DepartureStatus): number {
    const { options, state } = this.#options;
    const isAhead = runsAhead(intended) && state.isPressing && !isUnderWay(state.recorded);
    const isAsked = state.memory.drain !== undefined || intended.reason === "AwaitingMachine";
    if (!isAhead || isAsked) return 0;
    return this.#openedMs + progressEveryMs - options.clock.monotonic();
  }

  async #record(): Promise<void> {
    const { state, statusWriter, signal, onGone } = this.#options;
    const write = new IntendedWrite(state, [this.#known, ...this.#unanswered]);
    try {
      const after = await statusWriter.write(state.seen, (fresh) => write.statusOn(fresh));
      state.hears();
      this.#unwritten = undefined;
      this.#unanswered = [];
      this.#faults = 0;
      this.#failed = undefined;
      if (after === undefined) onGone();
      else this.#written(after, write);
    } catch (error) {
      const { sent } = write;
      if (sent !== undefined)
        this.#unanswered = [sent, ...this.#unanswered].slice(0, mostUnanswered);
      if (!signal.aborted) this.#notWritten(error);
    }
  }

  #written(after: Departure, { sent, met }: IntendedWrite): void {
    const { state, onDropped } = this.#options;
    this.#known = after.status;
    if (met === undefined) {
      const { intended } = state.memory;
      const open = intended === sent ? undefined : intended;
      state.remember({ first: undefined, intended: open });
      return;
    }
    // What was decided on the old one is decided again.
    const { resourceVersion, status } = state.seen;
    state.seen = { ...after, resourceVersion, status };
    if (met === "OtherStatus") this.#forget();
    else state.remember({ intended: undefined });
    onDropped();
  }

  #notWritten(error: unknown): void {
    const { options, state, refusals, onLeaseLost, onUnstarted } = this.#options;
    const { clock } = options;
    const fault = faultOf(error);
    if (fault.code === "LEASE_LOST") {
      onLeaseLost();
      return;
    }
    if (!isAway(fault)) state.hears();
    const { recorded } = state;
    if (!isUnderWay(recorded) && !isNoticed(recorded)) {
      onUnstarted(error);
      return;
    }
    const before = this.#unwritten;
    const sinceMs = failingSince(fault, { before, nowMs: clock.monotonic() });
    this.#unwritten = { fault, sinceMs };
    this.#faults += 1;
    refusals.tellAlways(error, sinceMs);
    const restMs = refusals.pauseAfter(fault, this.#faults, this.#longestPause());
    this.#failed = { atMs: clock.monotonic(), restMs };
  }

  #longestPause(): Millis {
    const { options, state } = this.#options;
    const { clock } = options;
    const nowMs = clock.monotonic();
    const failingMs = nowMs - (this.#unwritten?.sinceMs ?? nowMs);
    return longestRecordPause(state.seen, { now: clock.now(), failingMs });
  }
}

/** One write of the status as it should stand, and what it met. */
class IntendedWrite {
  readonly #state: OpenState;
  /** What it was decided on, and our own earlier writes, whose answers were lost. */
  readonly #own: readonly DepartureStatus[];
  readonly #seen: Departure;
  /** What was sent last. */
  sent: DepartureStatus | undefined;
  /** What somebody else has changed, so that nothing was written. */
  met: "OtherSpec" | "OtherStatus" | undefined;

  constructor(state: OpenState, own: readonly DepartureStatus[]) {
    this.#state = state;
    this.#seen = state.seen;
    this.#own = own;
  }

  /** The status to write onto the Departure as it is; undefined if nothing is to be written. */
  statusOn(fresh: Departure): DepartureStatus | undefined {
    const { intended } = this.#state.memory;
    this.met = this.#changeOf(fresh, intended);
    if (this.met !== undefined) return undefined;
    this.sent = intended;
    if (intended === undefined) return undefined;
    const { actions, policy } = fresh.status;
    return { ...intended, ...(actions && { actions }), policy: intended.policy ?? policy };
  }

  /** Whether somebody else has written the status, or the spec. */
  #changeOf(fresh: Departure, intended: DepartureStatus | undefined) {
    const own = this.sent === undefined ? this.#own : [this.sent, ...this.#own];
    if (!own.some((one) => isSameStatus(one, fresh.status))) return "OtherStatus";
    if (isSameSpec(fresh, this.#seen)) return undefined;
    // It has been acted upon already: under a notice, or because it could not be recorded.
    const { isPressing, memory } = this.#state;
    const isAhead = isPressing && intended !== undefined && runsAhead(intended);
    return isAhead || memory.isUndoneWithoutRecord ? undefined : "OtherSpec";
  }
}

/** Whether nobody has postponed, noticed or deleted it in between. */
function isSameSpec(one: Departure, other: Departure): boolean {
  return isSameJson(specOf(one), specOf(other));
}

function specOf({
  cause,
  hold,
  departAt,
  deadlineAt,
  noticedAt,
  withdrawnAt,
  deletionAt,
}: Departure) {
  return { cause, hold, departAt, deadlineAt, noticedAt, withdrawnAt, deletionAt };
}

/** Whether two statuses are the same, apart from what actions write into it. */
function isSameStatus(one: DepartureStatus, other: DepartureStatus): boolean {
  return isSameJson(withoutActions(one), withoutActions(other));
}

function withoutActions({ actions: _, policy: __, ...status }: DepartureStatus) {
  return status;
}

/** Whether only what informs people differs. */
function isProgress(before: DepartureStatus, after: DepartureStatus): boolean {
  return isSameJson(withoutProgress(before), withoutProgress(after));
}

function withoutProgress(status: DepartureStatus) {
  const progress = ["drain", "demands", "reason", "message", "releasingSeconds"];
  const fields = Object.entries(withoutActions(status));
  return Object.fromEntries(fields.filter(([name]) => !progress.includes(name)));
}
