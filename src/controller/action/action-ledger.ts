import { begunRecord, isClaimable, newestRecords } from "../../core/action/action-record.ts";
import type { ActionRecord, Departure } from "../../core/departure/departure.ts";
import { isSameJson } from "../../core/json/json-field.ts";
import type { Action } from "../../core/policy/action.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { Instant } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";
import type { DepartureTelemetry } from "../departure/departure-telemetry.ts";
import type { PlaceInRush, StatusWriter } from "../departure/status-writer.ts";
import type { WriteRetries } from "./write-retries.ts";

export interface ActionLedgerOptions {
  /** The current policy, which may change if the node is seen only later. */
  readonly policy: () => Policy;
  readonly statusWriter: StatusWriter;
  readonly telemetry: DepartureTelemetry;
  /** The current departure. */
  readonly departure: () => Departure;
  /** Retries a write until it succeeds or the signal aborts. */
  readonly retry: WriteRetries;
  /** Whether an action is running in this process. */
  readonly underWay: (name: string) => boolean;
}

/**
 * Manages `status.actions` of one departure. It is newer than the status for actions that this
 * process has started; for all others the status is newer. Writes are sent one after another, each
 * with all changes. In a burst they yield to cordons and evictions, and so do actions that wait for
 * their undo record: quarantine and detaching are less urgent than the drain. Deregistering from
 * load balancers is not, and its record takes turns with pending evictions.
 */
export class ActionLedger {
  readonly #options: ActionLedgerOptions;
  readonly #own = new Map<string, ActionRecord>();
  #records: readonly ActionRecord[];
  /** The write that has not been sent yet, which will include further changes. */
  #waiting: Promise<void> | undefined;

  constructor(options: ActionLedgerOptions) {
    this.#options = options;
    this.#records = options.departure().status.actions ?? [];
  }

  /** Called if no other process has started actions: every write includes the records. */
  own(): void {
    this.#options.statusWriter.accompany((fresh) => this.#statusOf(fresh));
  }

  get records(): readonly ActionRecord[] {
    return this.#records;
  }

  recordOf({ name, at, how }: Action): ActionRecord {
    const known = this.#records.find((record) => record.name === name);
    return known ?? { name, kind: how.kind, at, state: "Pending", attempts: 0 };
  }

  /** The record of an action that starts now, or that continues a run of an earlier process. */
  begunOf(action: Action, now: Instant): ActionRecord {
    const { status } = this.#options.departure();
    return begunRecord(this.recordOf(action), { status, now });
  }

  /** Sets the record of an action; `save` writes it. */
  set(record: ActionRecord): void {
    this.#own.set(record.name, record);
    this.reconsider();
  }

  /** Reevaluates the actions that have not started, for the current cause and phase. */
  reconsider(): void {
    this.#records = this.#planned(this.#records);
  }

  /**
   * Records that an action starts. Returns false if another process has ended it meanwhile, or the
   * departure is gone.
   */
  async claim(begun: ActionRecord, signal: AbortSignal): Promise<boolean> {
    const { statusWriter, departure, retry } = this.#options;
    const { name } = begun;
    this.set(begun);
    let isOurs = true;
    const claimOnce = () =>
      statusWriter.write(departure(), (fresh) => {
        isOurs = isClaimable(fresh.status.actions?.find((one) => one.name === name));
        if (isOurs) return this.#statusOf(fresh);
        this.#own.delete(name);
        this.#records = this.#planned(fresh.status.actions ?? []);
        return undefined;
      });
    const written = await retry(claimOnce, signal);
    return isOurs && written !== undefined;
  }

  /** Resolves when all records set before are in the status. */
  async save(signal: AbortSignal, place: PlaceInRush = "Behind"): Promise<void> {
    await this.#options.retry(() => this.#write(place), signal);
  }

  /**
   * The same for an undo, which does not wait for ever for its record: a leader that does not know
   * of it repeats it.
   */
  async saveUndo(signal: AbortSignal): Promise<void> {
    try {
      await this.save(signal);
    } catch (error) {
      if (signal.aborted || (isLastcallError(error) && error.code === "LEASE_LOST")) throw error;
      const { telemetry, departure } = this.#options;
      telemetry.faulted("actions-not-written", departure(), error);
    }
  }

  /** Saves in the background. */
  saveBeside(signal: AbortSignal): void {
    this.save(signal).catch((error: unknown) => {
      const { telemetry, departure } = this.#options;
      if (!signal.aborted) telemetry.faulted("actions-not-written", departure(), error);
    });
  }

  #write(place: PlaceInRush): Promise<void> {
    const { statusWriter, departure } = this.#options;
    this.reconsider();
    if (place === "Behind" && this.#waiting !== undefined) return this.#waiting;
    const change = (fresh: Departure) => {
      this.#waiting = undefined;
      return this.#statusOf(fresh);
    };
    this.#waiting = statusWriter
      .write(departure(), change, place)
      .then(() => undefined)
      .finally(() => {
        this.#waiting = undefined;
      });
    return this.#waiting;
  }

  /** The status with the records; undefined if unchanged. */
  #statusOf({ status }: Departure): Departure["status"] | undefined {
    const written = status.actions ?? [];
    const actions = this.#planned(written);
    this.#records = actions;
    // The API server returns the fields of an object in its own order.
    return isSameJson(written, actions)
      ? undefined
      : { ...status, actions, policy: this.#options.policy().name };
  }

  #planned(written: readonly ActionRecord[]): readonly ActionRecord[] {
    const { policy, departure, underWay } = this.#options;
    const own = this.#own.values();
    return newestRecords(written, { own, underWay, departure: departure(), policy: policy() });
  }
}
