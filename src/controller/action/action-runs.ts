import type { ActionPorts, ActionRunner, MachineAddresses } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import { actionOfRecord, isMessage } from "../../core/action/action-plan.ts";
import { brokenOffRecord, mayBreakOff } from "../../core/action/action-record.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { NodeFacts, NodeIdentity } from "../../core/cluster/node.ts";
import {
  type ActionRecord,
  cloudDeadline,
  isLive,
  isPressing,
} from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import type { Action } from "../../core/policy/action.ts";
import { millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { PendingCordons } from "../departure/pending-cordons.ts";
import {
  type ActionEnd,
  carryOut,
  lostWithPolicy,
  type OpenTask,
  rolledBack,
  takeBack,
  taskFor,
  unsupported,
} from "./action-attempt.ts";
import { ActionLedger, type ActionLedgerOptions } from "./action-ledger.ts";

export interface ActionRunsOptions extends ActionLedgerOptions {
  /** Unset if this process cannot run actions. */
  readonly actionPorts: ActionPorts | undefined;
  readonly cordons: Pick<PendingCordons, "answered">;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The node as last seen by the watch. */
  readonly node: () => NodeFacts | undefined;
  readonly machineAddresses: (node: string, signal: AbortSignal) => Promise<MachineAddresses>;
  /** Another process may have started actions, so each is claimed first. */
  readonly isResumed: boolean;
  /** Ends when the departure is closed. */
  readonly signal: AbortSignal;
}

/** What ends a run of an action. */
export interface RunControl {
  readonly signal: AbortSignal;
  /** False once the departure is undone. */
  readonly isWanted: () => boolean;
}

/** How long after a notice actions start, so that cordons are sent first. */
const afterCordonMs = millis(1);
/**
 * How long the write that an action has started is delayed, so that it includes the undo record.
 */
const gatherMs = millis(20);
/**
 * How long the write of a result is delayed under a notice if nothing waits for it: as long as that
 * of drain progress.
 */
const gatherEndsMs = seconds(1);

/**
 * Carries out and undoes single actions of one departure, as `next` asks for them. The status
 * records each action before its first change and after its end, so that the next leader resumes
 * what is open and does nothing twice.
 */
export class ActionRuns {
  readonly #options: ActionRunsOptions;
  readonly #ledger: ActionLedger;
  /** The actions whose receivers are being asked for a change. */
  readonly #asked = new Set<string>();
  /** Remembered because a notice may not name it, and a Node that is gone no longer shows it. */
  #providerID: string | undefined;

  constructor(options: ActionRunsOptions) {
    this.#options = options;
    this.#ledger = new ActionLedger(options);
    if (!options.isResumed) this.#ledger.own();
  }

  /** The current records, which may be newer than those in the status. */
  get records(): readonly ActionRecord[] {
    return this.#ledger.records;
  }

  /** Whether a run may be broken off. */
  mayStop(name: string): boolean {
    const record = this.#ledger.records.find((one) => one.name === name);
    return mayBreakOff(record, this.#asked.has(name));
  }

  /** Rejects only if the lease or the departure is lost, or with the signal's reason. */
  async run(name: string, run: RunControl): Promise<void> {
    const { policy, signal } = this.#options;
    const action = policy().actions.find((one) => one.name === name);
    if (action === undefined) return;
    try {
      await this.#behindCordons(run.signal);
      await this.#runNow(action, run);
    } catch (error) {
      const isLost = isLastcallError(error) && error.code === "LEASE_LOST";
      if (signal.aborted || isLost) throw error;
      this.#broken(action, error, run);
    }
  }

  /** Undoes what an action has changed. The same holds for rejections. */
  async undo(name: string, signal: AbortSignal): Promise<void> {
    const record = this.#ledger.records.find((one) => one.name === name);
    if (record === undefined) return;
    // A half-undone action is no longer done: a notice that arrives now must run it again.
    this.#ledger.set({ ...record, state: "Running" });
    await this.#ledger.saveUndo(signal);
    const end = await this.#takeBack(record, signal);
    this.#end(
      end.kind === "Done"
        ? { ...record, state: "Undone", result: "Undone", detail: end.done.detail }
        : { ...record, state: "Failed", result: end.code, detail: `not undone: ${end.detail}` },
    );
    await this.#ledger.saveUndo(signal);
  }

  /** Ends actions that nothing continues until the departure starts again. */
  async interrupt(names: readonly string[], signal: AbortSignal): Promise<void> {
    const { code: result, message: detail } = heldBefore();
    for (const record of this.#ledger.records) {
      if (names.includes(record.name)) this.#end({ ...record, state: "Failed", result, detail });
    }
    await this.#ledger.saveUndo(signal);
  }

  /** Resolves when the records are in the status. */
  async record(signal: AbortSignal): Promise<void> {
    await this.#behindCordons(signal);
    await this.#ledger.save(signal);
  }

  async #behindCordons(signal: AbortSignal): Promise<void> {
    const { clock, cordons } = this.#options;
    await clock.sleep(afterCordonMs, signal);
    await cordons.answered(signal);
  }

  async #runNow(action: Action, run: RunControl): Promise<void> {
    const { clock, actionPorts, isResumed, signal } = this.#options;
    this.#ledger.reconsider();
    const begun = this.#ledger.begunOf(action, clock.now());
    if (isResumed) {
      if (!(await this.#ledger.claim(begun, run.signal))) return;
    } else {
      this.#ledger.set(begun);
      clock.sleep(gatherMs, signal).then(
        () => this.#ledger.saveBeside(signal),
        () => undefined,
      );
    }
    const runner = await actionPorts?.runners(action.how.kind);
    const end =
      runner === undefined ? unsupported(action.how) : await this.#carryOut(action, runner, run);
    await this.#settle(action, end, { ...run, attemptsBefore: begun.attempts - 1 });
  }

  #carryOut(action: Action, runner: ActionRunner, run: RunControl): Promise<ActionEnd> {
    const { clock, rng, departure } = this.#options;
    const { signal, isWanted } = run;
    const kept = this.#ledger.recordOf(action).undo;
    const keep = async (undo: Fields) => {
      // Nothing has been changed yet, and nothing will be.
      if (!isWanted()) throw rolledBack;
      this.#ledger.set({ ...this.#ledger.recordOf(action), undo });
      // A machine that still receives requests must be deregistered before its pods end, not after.
      const isDue = action.how.kind === "deregisterTargets" && this.#isPressing;
      await this.#ledger.save(signal, isDue ? "Between" : "Behind");
    };
    const deadlineAt = () => (action.at === "AtEnd" ? undefined : cloudDeadline(departure()));
    const isRolledBack = () => !isWanted() && !isMessage(action.how.kind);
    const onAsked = (isAsked: boolean) => {
      if (isAsked) this.#asked.add(action.name);
      else this.#asked.delete(action.name);
    };
    const options = { clock, rng, signal, runner, isRolledBack, onAsked, keep, kept, deadlineAt };
    return carryOut(action, this.#taskOf(action), options);
  }

  async #settle(
    action: Action,
    end: ActionEnd,
    { attemptsBefore, isWanted }: RunControl & { readonly attemptsBefore: number },
  ): Promise<void> {
    const { clock, departure, signal } = this.#options;
    const record = this.#ledger.recordOf(action);
    const took = (clock.now() - (record.startedAt ?? clock.now())) / 1000;
    const ended = { ...record, attempts: attemptsBefore + end.attempts, seconds: took };
    this.#end(
      end.kind === "Done"
        ? { ...ended, ...end.done, state: "Done", result: "Done" }
        : { ...ended, state: "Failed", result: end.code, detail: end.detail },
    );
    const isUrgent = !isWanted() || !isLive(departure()) || !this.#isPressing;
    if (!isUrgent) await clock.sleep(gatherEndsMs, signal);
    if (isWanted()) await this.#ledger.save(signal);
    else await this.#ledger.saveUndo(signal);
  }

  async #takeBack(record: ActionRecord, signal: AbortSignal): Promise<ActionEnd> {
    const { actionPorts, clock, rng, policy } = this.#options;
    const { name, undo, kind } = record;
    const known = policy().actions.find((one) => one.name === name && one.how.kind === kind);
    const action = known ?? actionOfRecord(record);
    if (action === undefined) return lostWithPolicy(record);
    const runner = await actionPorts?.runners(action.how.kind);
    if (runner === undefined || undo === undefined) {
      return unsupported({ kind: "unknown", field: kind });
    }
    return takeBack(action, { ...this.#taskOf(action), undo }, { clock, rng, runner, signal });
  }

  #end(record: ActionRecord): void {
    const { telemetry, departure } = this.#options;
    this.#ledger.set(record);
    telemetry.actionEnded(departure(), record, this.#ledger.records);
  }

  /** It was broken off before it had ended, or something unexpected has happened. */
  #broken(action: Action, error: unknown, { signal }: RunControl): void {
    const record = this.#ledger.recordOf(action);
    if (signal.aborted || error === rolledBack) {
      if (record.state !== "Running") return;
      this.#ledger.set(brokenOffRecord(record));
    } else {
      const result = isLastcallError(error) ? error.code : "UNEXPECTED";
      this.#end({ ...record, result, state: "Failed", detail: messageOf(error) });
    }
    this.#ledger.saveBeside(this.#options.signal);
  }

  get #isPressing(): boolean {
    return isPressing(this.#options.departure(), this.#options.clock.now());
  }

  #taskOf(action: Action): OpenTask {
    const { departure, policy, machineAddresses } = this.#options;
    const node = this.#identity();
    const status = { ...departure().status, actions: this.#ledger.records };
    return taskFor(
      action,
      { ...departure(), node, status },
      {
        policy: policy().name,
        addresses: (signal) => machineAddresses(node.name, signal),
      },
    );
  }

  #identity(): NodeIdentity {
    const { node } = this.#options.departure();
    const seen = this.#options.node();
    this.#providerID ??= node.providerID ?? (seen?.uid === node.uid ? seen.providerID : undefined);
    return { ...node, providerID: this.#providerID };
  }
}

function heldBefore(): LastcallError {
  const problem =
    "Cannot complete the action: the departure is held, and whether the action was carried out is unknown";
  return new LastcallError("ACTION_INTERRUPTED", problem);
}
