import type { ActionRunner, MachineAddresses } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import {
  actionOfRecord,
  dueActions,
  isForGood,
  isMessage,
  pointsReached,
  undoableRecords,
} from "../../core/action/action-plan.ts";
import type { Rng } from "../../core/chance/rng.ts";
import type { NodeFacts, NodeIdentity } from "../../core/cluster/node.ts";
import {
  type ActionRecord,
  cloudDeadline,
  isLive,
  isPressing,
} from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import { reactionTo } from "../../core/notice/interruption.ts";
import type { Action, ActionPoint, ActionSpec } from "../../core/policy/action.ts";
import { millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";
import {
  type ActionEnd,
  carryOut,
  type OpenTask,
  rolledBack,
  takeBack,
  taskFor,
} from "./action-attempt.ts";
import { ActionLedger, type ActionLedgerOptions } from "./action-ledger.ts";
import type { PendingCordons } from "./pending-cordons.ts";

export interface ActionPipelineOptions extends Omit<ActionLedgerOptions, "underWay"> {
  readonly executor: Executor;
  readonly cordons: Pick<PendingCordons, "answered">;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Its node as the watch has shown it last. */
  readonly node: () => NodeFacts | undefined;
  readonly machineAddresses: (node: string, signal: AbortSignal) => Promise<MachineAddresses>;
}

/** An action that is being carried out. */
interface UnderWay {
  readonly ended: Promise<void>;
  readonly way: Way;
}

interface Way {
  readonly stop: AbortController;
  readonly signal: AbortSignal;
  /** Its receiver has been asked, and has not answered yet. */
  isAsked: boolean;
}

/** Cordons go out first: what begins in the turn of a notice begins so long after it. */
const afterCordonMs = millis(1);
/** That an action begins is written so much later, with what it has found to undo it by then. */
const gatherMs = millis(20);
/** And under a notice how it has ended, where nobody waits for that: at the pace of progress. */
const gatherEndsMs = seconds(1);

/**
 * The actions of one departure, beside its steps: begun when a point is reached, each for itself,
 * and in nobody's way. The status has each before its first change and after its end, so that the
 * next leader goes on with what is open and does nothing twice.
 */
export class ActionPipeline {
  readonly #options: ActionPipelineOptions;
  readonly #ledger: ActionLedger;
  readonly #underWay = new Map<string, UnderWay>();
  readonly #reached = new Set<ActionPoint>();
  /** Ends with the run, and not with the phase in which an action began. */
  #signal: AbortSignal = AbortSignal.abort();
  /** Another process, or another run, may have gone on with it: each action is claimed first. */
  #isResumed = false;
  #isUndoing = false;
  /** A notice may not name it, and a Node that is gone tells it no more. */
  #providerID: string | undefined;

  constructor(options: ActionPipelineOptions) {
    this.#options = options;
    this.#ledger = new ActionLedger({ ...options, underWay: (name) => this.#underWay.has(name) });
  }

  /** Before anything else: for how long it runs, and whether a run before it may have begun. */
  open(signal: AbortSignal, how: "New" | "Resumed"): void {
    this.#signal = signal;
    this.#isResumed = how === "Resumed";
    if (how === "New") this.#ledger.own();
  }

  /** The names of the actions that a planned drain waits for. */
  get required(): ReadonlySet<string> {
    const { actions } = this.#options.policy();
    return new Set(actions.filter(({ required }) => required).map(({ name }) => name));
  }

  /** Whether every second counts, so that nobody waits for an action. */
  get isPressing(): boolean {
    return isPressing(this.#options.departure(), this.#options.clock.now());
  }

  /** The record of the first action of a kind that is for this departure, as it is now. */
  recordOf(kind: ActionSpec["kind"]): ActionRecord | undefined {
    return this.#ledger.records.find((one) => one.kind === kind && one.state !== "Skipped");
  }

  /** Begins what is due in the phase that the departure is in, and at a point before the next. */
  begin(point?: ActionPoint): void {
    if (this.#isIdle) return;
    this.#isUndoing = false;
    if (point !== undefined) this.#reached.add(point);
    const { clock, cordons } = this.#options;
    const signal = this.#signal;
    const gone = clock.sleep(afterCordonMs, signal).then(() => cordons.answered(signal));
    gone.then(
      () => this.#beginDue(),
      () => undefined,
    );
  }

  /** The same where the cause has become another: what did not fit it may fit now. */
  reconsider(): void {
    if (!this.#isIdle && this.#reached.size > 0) this.#beginDue();
  }

  /**
   * Resolves when none of these actions is under way any more, with those that have failed. One
   * whose point has not been reached is not waited for.
   */
  async settled(
    these: (record: ActionRecord) => boolean,
    signal: AbortSignal,
  ): Promise<readonly ActionRecord[]> {
    if (this.#isIdle) return [];
    this.#beginDue();
    const found = () => this.#ledger.records.filter(these);
    for (;;) {
      const running = found().flatMap(({ name }) => this.#underWay.get(name)?.ended ?? []);
      if (running.length === 0) return found().filter(({ state }) => state === "Failed");
      await unlessAborted(Promise.all(running), signal);
    }
  }

  /** Puts back what was changed. Resolves when that is done, or has failed for good. */
  async undo(signal: AbortSignal): Promise<void> {
    if (this.#isIdle) return;
    this.#isUndoing = true;
    this.#reached.clear();
    const undoable = () => undoableRecords(this.#ledger.records);
    // What cannot be undone is not begun or tried again, unless it is a message.
    const stopped = undoable().flatMap(({ name }) => this.#underWay.get(name) ?? []);
    for (const { way } of stopped) way.stop.abort(rolledBack);
    // Where its receiver has been asked the node is not at work again before it has answered.
    const asked = this.#ledger.records
      .filter(isForGood)
      .flatMap(({ name }) => this.#underWay.get(name) ?? [])
      .filter(({ way }) => way.isAsked);
    const ending = [...stopped, ...asked].map(({ ended }) => ended);
    await unlessAborted(Promise.all(ending), signal);
    const records = undoable();
    if (records.length === 0) return;
    // Half undone it is no longer done: a notice that comes now finds it to be done again.
    for (const record of records) this.#ledger.set({ ...record, state: "Running" });
    await this.#ledger.save(signal);
    const byKind = Map.groupBy(records, ({ kind }) => kind).values();
    await Promise.all(byKind.map((same) => this.#takeBackInTurn(same, signal)));
  }

  /** What a later action of a kind has found is what the one before it had made. */
  async #takeBackInTurn(records: readonly ActionRecord[], signal: AbortSignal): Promise<void> {
    const begunMs = ({ startedAt }: ActionRecord): number => startedAt ?? 0;
    const latestFirst = records.toReversed().toSorted((a, b) => begunMs(b) - begunMs(a));
    for (const record of latestFirst) await this.#takeBack(record, signal);
  }

  /**
   * Before the departure is held: what can be undone is undone. What a process before this one has
   * begun beside that is ended, since nobody goes on with it until the departure begins once more.
   */
  async suspend(signal: AbortSignal): Promise<void> {
    await this.undo(signal);
    const left = this.#ledger.records.filter(({ state }) => state === "Running");
    const { code: result, message: detail } = heldBefore();
    for (const record of left) await this.#ended({ ...record, state: "Failed", result, detail });
  }

  /** After the outcome: what is under way ends, then the actions at the end are carried out. */
  async finish(signal: AbortSignal): Promise<void> {
    if (this.#isIdle) return;
    await this.#untilQuiet(signal);
    this.#isUndoing = false;
    this.#reached.clear();
    this.#beginDue();
    await this.#untilQuiet(signal);
    await this.#ledger.save(signal);
  }

  async #untilQuiet(signal: AbortSignal): Promise<void> {
    const all = [...this.#underWay.values()].map(({ ended }) => ended);
    await unlessAborted(Promise.all(all), signal);
  }

  /** Most policies name no action: then nothing is asked, and nothing written. */
  get #isIdle(): boolean {
    return this.#options.policy().actions.length === 0 && this.#ledger.records.length === 0;
  }

  #beginDue(): void {
    if (this.#signal.aborted || this.#isUndoing) return;
    const { policy, departure } = this.#options;
    const drains = reactionTo(departure(), policy()) !== "Cordon";
    const points = pointsReached(departure().status.phase, { drains });
    for (const point of points) this.#reached.add(point);
    this.#ledger.reconsider();
    const due = dueActions(policy().actions, {
      records: this.#ledger.records,
      reached: [...this.#reached],
      underWay: (name) => this.#underWay.has(name),
    });
    for (const action of due) this.#start(action);
    // What is under way has its own to write, and takes the others along.
    if (this.#underWay.size === 0) this.#ledger.saveBeside(this.#signal);
  }

  #start(action: Action): void {
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    const way: Way = { stop, signal, isAsked: false };
    const ended = this.#run(action, way)
      .catch((error: unknown) => this.#broken(action, error))
      .finally(() => this.#underWay.delete(action.name));
    this.#underWay.set(action.name, { ended, way });
  }

  async #run(action: Action, way: Way): Promise<void> {
    const { clock, executor } = this.#options;
    const before = this.#ledger.recordOf(action);
    const startedAt = before.startedAt ?? clock.now();
    const attempts = before.attempts + 1;
    const begun: ActionRecord = { ...before, state: "Running", startedAt, attempts };
    if (this.#isResumed) {
      if (!(await this.#ledger.claim(begun, way.signal))) return;
    } else {
      this.#ledger.set(begun);
      clock.sleep(gatherMs, this.#signal).then(
        () => this.#ledger.saveBeside(this.#signal),
        () => undefined,
      );
    }
    const runner = await executor.actionRunner(action.how.kind);
    const end =
      runner === undefined ? unsupported(action.how) : await this.#carryOut(action, runner, way);
    await this.#settle(action, end, before.attempts);
  }

  #carryOut(action: Action, runner: ActionRunner, way: Way): Promise<ActionEnd> {
    const { clock, rng, departure } = this.#options;
    const { stop, signal } = way;
    const kept = this.#ledger.recordOf(action).undo;
    const keep = async (undo: Fields) => {
      // Nothing has been changed yet, and nothing will be.
      if (this.#isUndoing) stop.abort(rolledBack);
      signal.throwIfAborted();
      this.#ledger.set({ ...this.#ledger.recordOf(action), undo });
      // Whom requests still reach is to be out before its pods have ended, and not after them.
      const isDue = action.how.kind === "deregisterTargets" && this.isPressing;
      await this.#ledger.save(signal, isDue ? "Ahead" : "Behind");
    };
    const deadlineAt = () => (action.at === "AtEnd" ? undefined : cloudDeadline(departure()));
    const isTakenBack = () => this.#isUndoing && !isMessage(action.how.kind);
    const onAsked = (isAsked: boolean) => {
      way.isAsked = isAsked;
    };
    const options = { clock, rng, signal, runner, isTakenBack, onAsked, keep, kept, deadlineAt };
    return carryOut(action, this.#taskOf(action), options);
  }

  async #settle(action: Action, end: ActionEnd, attemptsBefore: number): Promise<void> {
    const { clock } = this.#options;
    const record = this.#ledger.recordOf(action);
    const seconds = (clock.now() - (record.startedAt ?? clock.now())) / 1000;
    const attempts = attemptsBefore + end.attempts;
    await this.#ended(
      end.kind === "Done"
        ? { ...record, ...end.done, state: "Done", result: "Done", attempts, seconds }
        : { ...record, state: "Failed", result: end.code, detail: end.detail, attempts, seconds },
    );
  }

  async #takeBack(record: ActionRecord, signal: AbortSignal): Promise<void> {
    const { executor, clock, rng, policy } = this.#options;
    const { name, undo, kind } = record;
    const known = policy().actions.find((one) => one.name === name && one.how.kind === kind);
    const action = known ?? actionOfRecord(record);
    const runner = action && (await executor.actionRunner(action.how.kind));
    const end =
      action === undefined || runner === undefined || undo === undefined
        ? unsupported({ kind: "unknown", field: kind })
        : await takeBack(action, { ...this.#taskOf(action), undo }, { clock, rng, runner, signal });
    await this.#ended(
      end.kind === "Done"
        ? { ...record, state: "Undone", result: "Undone", detail: end.done.detail }
        : { ...record, state: "Failed", result: end.code, detail: `not undone: ${end.detail}` },
    );
  }

  async #ended(record: ActionRecord): Promise<void> {
    const { telemetry, departure, clock } = this.#options;
    this.#ledger.set(record);
    telemetry.actionEnded(departure(), record, this.#ledger.records);
    const isUrgent = this.#isUndoing || !isLive(departure()) || !this.isPressing;
    if (!isUrgent) await clock.sleep(gatherEndsMs, this.#signal);
    await this.#ledger.save(this.#signal);
  }

  /** A fault in the pipeline's own work; of a lost lease the next leader makes good. */
  #broken(action: Action, error: unknown): void {
    const { telemetry, departure } = this.#options;
    const isLost = isLastcallError(error) && error.code === "LEASE_LOST";
    if (this.#signal.aborted || isLost) return;
    const record = this.#ledger.recordOf(action);
    const failed = { result: isLastcallError(error) ? error.code : "UNEXPECTED" };
    const broken: ActionRecord =
      error === rolledBack
        ? { ...record, state: record.undo === undefined ? "Undone" : "Running" }
        : { ...record, ...failed, state: "Failed", detail: messageOf(error) };
    this.#ledger.set(broken);
    if (broken.state === "Failed") telemetry.actionEnded(departure(), broken, this.#ledger.records);
    this.#ledger.saveBeside(this.#signal);
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

function unsupported(how: ActionSpec): ActionEnd {
  const kind = how.kind === "unknown" ? how.field : how.kind;
  const detail = `Cannot carry out the action: this version has nothing for ${kind}, upgrade Lastcall or remove the action from the policy`;
  return { kind: "Failed", code: "ACTION_UNSUPPORTED", detail, attempts: 0 };
}

function heldBefore(): LastcallError {
  const problem =
    "Cannot end the action: the departure is held, and whether the action was done is not known";
  return new LastcallError("ACTION_INTERRUPTED", problem);
}

async function unlessAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true, signal: over.signal });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    over.abort();
  }
}
