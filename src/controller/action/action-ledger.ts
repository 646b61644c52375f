import { actionRecords, isUnfinished, recordsAtEnd } from "../../core/action/action-plan.ts";
import type { ActionRecord } from "../../core/departure/action-record.ts";
import type { Departure } from "../../core/departure/departure.ts";
import { begunLastAt } from "../../core/departure/ledger.ts";
import { isSameJson } from "../../core/json/json-field.ts";
import type { Action } from "../../core/policy/action.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { DepartureTelemetry } from "../departure/departure-telemetry.ts";
import type { PlaceInRush, StatusWriter } from "../departure/status-writer.ts";

export interface ActionLedgerOptions {
  /** By which it is carried out; another one where its node is seen only later. */
  readonly policy: () => Policy;
  readonly statusWriter: StatusWriter;
  readonly telemetry: DepartureTelemetry;
  /** The departure as it is now. */
  readonly departure: () => Departure;
  /** Tries a write again until it works, or the signal aborts. */
  readonly retry: <T>(work: () => Promise<T>, signal: AbortSignal) => Promise<T>;
  /** Whether an action is being carried out in this process. */
  readonly underWay: (name: string) => boolean;
}

/**
 * `status.actions` of one departure: of what this process has begun it knows more than the status,
 * of all else the status knows more. Writes go one after another, and each carries all that is new.
 * In a rush of notices they stand back for cordons and evictions, and with them what waits for its
 * old state to be written: to be quarantined or detached is less urgent than to be drained. To be
 * out of the load balancers is not: that goes ahead of the evictions that wait.
 */
export class ActionLedger {
  readonly #options: ActionLedgerOptions;
  readonly #own = new Map<string, ActionRecord>();
  #records: readonly ActionRecord[];
  /** A write that has not begun yet carries what comes meanwhile. */
  #waiting: Promise<void> | undefined;

  constructor(options: ActionLedgerOptions) {
    this.#options = options;
    this.#records = options.departure().status.actions ?? [];
  }

  /** Where nobody else has begun them: what is known of them goes with each write. */
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

  /** Takes down what this process knows of an action; `save` writes it. */
  set(record: ActionRecord): void {
    this.#own.set(record.name, record);
    this.reconsider();
  }

  /** Judges again what has not begun, by cause and phase as they are now. */
  reconsider(): void {
    this.#records = this.#planned(this.#records);
  }

  /**
   * Writes that an action begins, and gives whether it may: where another process has ended it
   * meanwhile, it may not, nor where the departure is gone.
   */
  async claim(begun: ActionRecord, signal: AbortSignal): Promise<boolean> {
    const { statusWriter, departure, retry } = this.#options;
    const { name } = begun;
    this.set(begun);
    let isOurs = true;
    const claimOnce = () =>
      statusWriter.write(departure(), (fresh) => {
        const there = fresh.status.actions?.find((one) => one.name === name);
        isOurs = there === undefined || isUnfinished(there) || there.state === "Undone";
        if (isOurs) return this.#statusOf(fresh);
        this.#own.delete(name);
        this.#records = this.#planned(fresh.status.actions ?? []);
        return undefined;
      });
    const written = await retry(claimOnce, signal);
    return isOurs && written !== undefined;
  }

  /** Resolves when all that was set before is in the status. */
  async save(signal: AbortSignal, place: PlaceInRush = "Behind"): Promise<void> {
    await this.#options.retry(() => this.#write(place), signal);
  }

  /** The same for whom nobody waits. */
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

  /** The status with the records; undefined where they stand there. */
  #statusOf({ status }: Departure): Departure["status"] | undefined {
    const written = status.actions ?? [];
    const actions = this.#planned(written);
    this.#records = actions;
    // The API server gives the fields of an object in an order of its own.
    return isSameJson(written, actions)
      ? undefined
      : { ...status, actions, policy: this.#options.policy().name };
  }

  #planned(written: readonly ActionRecord[]): readonly ActionRecord[] {
    const { policy, departure, underWay } = this.#options;
    const { cause, status } = departure();
    const newest = new Map([...written.map((one) => [one.name, one] as const), ...this.#own]);
    const records = [...newest.values()];
    const { actions, dryRun } = policy();
    const { phase } = status;
    const begunAt = begunLastAt(status);
    const planned = actionRecords(actions, { cause, phase, records, begunAt, dryRun });
    return phase === "Ended" ? recordsAtEnd(planned, underWay) : planned;
  }
}
