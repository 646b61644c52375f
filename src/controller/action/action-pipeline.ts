import type { ActionPorts, ActionRunner, MachineAddresses } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import {
  actionOfRecord,
  dueActions,
  isForGood,
  isMessage,
  pointsReached,
  undoableRecords,
} from "../../core/action/action-plan.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { NodeFacts, NodeIdentity } from "../../core/cluster/node.ts";
import {
  type ActionRecord,
  cloudDeadline,
  isLive,
  isPressing,
} from "../../core/departure/departure.ts";
import type { Fields } from "../../core/json/json-field.ts";
import { reactionTo } from "../../core/notice/interruption.ts";
import type { Action, ActionPoint } from "../../core/policy/action.ts";
import { millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import type { PendingCordons } from "../departure/pending-cordons.ts";
import {
  type ActionEnd,
  carryOut,
  type OpenTask,
  rolledBack,
  takeBack,
  taskFor,
  unsupported,
} from "./action-attempt.ts";
import { ActionLedger, type ActionLedgerOptions } from "./action-ledger.ts";

export interface ActionPipelineOptions extends Omit<ActionLedgerOptions, "underWay"> {
  /** Unset if this process cannot run actions. */
  readonly actionPorts: ActionPorts | undefined;
  readonly cordons: Pick<PendingCordons, "answered">;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The node as last seen by the watch. */
  readonly node: () => NodeFacts | undefined;
  readonly machineAddresses: (node: string, signal: AbortSignal) => Promise<MachineAddresses>;
}

/** A running action. */
interface UnderWay {
  readonly ended: Promise<void>;
  readonly way: Way;
}

interface Way {
  readonly stop: AbortController;
  readonly signal: AbortSignal;
  /** Whether a request to its receiver is waiting for the response. */
  isAsked: boolean;
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
 * Runs the actions of one departure beside its steps. Each starts when its point is reached,
 * independently of the others, and delays nothing. The status records each action before its first
 * change and after its end, so that the next leader resumes what is open and does nothing twice.
 */
export class ActionPipeline {
  readonly #options: ActionPipelineOptions;
  readonly #ledger: ActionLedger;
  readonly #underWay = new Map<string, UnderWay>();
  readonly #reached = new Set<ActionPoint>();
  /** Aborts when the departure is closed, not with the phase in which an action started. */
  #signal: AbortSignal = AbortSignal.abort();
  /** Another process may have continued the actions, so each is claimed first. */
  #isResumed = false;
  #isUndoing = false;
  /** Remembered because a notice may not name it, and a Node that is gone no longer shows it. */
  #providerID: string | undefined;

  constructor(options: ActionPipelineOptions) {
    this.#options = options;
    this.#ledger = new ActionLedger({ ...options, underWay: (name) => this.#underWay.has(name) });
  }

  /**
   * Called before anything else. `signal` limits all actions; `Resumed` if an earlier run may have
   * started some.
   */
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

  /** Whether every second counts, so that nothing waits for an action. */
  get isPressing(): boolean {
    return isPressing(this.#options.departure(), this.#options.clock.now());
  }

  /** The current records, which may be newer than those in the status. */
  get records(): readonly ActionRecord[] {
    return this.#ledger.records;
  }

  /**
   * Starts the actions that are due in the current phase, and at `point`, which precedes the next.
   */
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

  /**
   * Resolves with the failed ones once none of these actions is running. Does not wait for an
   * action whose point has not been reached.
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

  /** Undoes what was changed. Resolves when that has succeeded, or has failed for good. */
  async undo(signal: AbortSignal): Promise<void> {
    if (this.#isIdle) return;
    this.#isUndoing = true;
    this.#reached.clear();
    const undoable = () => undoableRecords(this.#ledger.records);
    // Actions with an undo record stop now. Others, except messages, no longer start or retry.
    const stopped = undoable().flatMap(({ name }) => this.#underWay.get(name) ?? []);
    for (const { way } of stopped) way.stop.abort(rolledBack);
    // The node is not uncordoned before a receiver has responded to a permanent change.
    const asked = this.#ledger.records
      .filter(isForGood)
      .flatMap(({ name }) => this.#underWay.get(name) ?? [])
      .filter(({ way }) => way.isAsked);
    await Promise.all([
      untilEnded(asked, signal),
      untilEnded(stopped, signal).then(() => this.#takeBackAll(undoable(), signal)),
    ]);
  }

  async #takeBackAll(records: readonly ActionRecord[], signal: AbortSignal): Promise<void> {
    if (records.length === 0) return;
    // A half-undone action is no longer done: a notice that arrives now must run it again.
    for (const record of records) this.#ledger.set({ ...record, state: "Running" });
    await this.#ledger.saveUndo(signal);
    const byKind = Map.groupBy(records, ({ kind }) => kind).values();
    await Promise.all(byKind.map((same) => this.#takeBackInTurn(same, signal)));
  }

  /** Undoes the actions of a kind latest first: what a later one found, an earlier one had made. */
  async #takeBackInTurn(records: readonly ActionRecord[], signal: AbortSignal): Promise<void> {
    const begunMs = ({ startedAt }: ActionRecord): number => startedAt ?? 0;
    const latestFirst = records.toReversed().toSorted((a, b) => begunMs(b) - begunMs(a));
    for (const record of latestFirst) await this.#takeBack(record, signal);
  }

  /**
   * Called before the departure is held. Undoes what can be undone. Ends other actions that an
   * earlier process has started, because nothing continues them until the departure starts again.
   */
  async suspend(signal: AbortSignal): Promise<void> {
    await this.undo(signal);
    const left = this.#ledger.records.filter(({ state }) => state === "Running");
    const { code: result, message: detail } = heldBefore();
    for (const record of left) await this.#ended({ ...record, state: "Failed", result, detail });
  }

  /** Called after the outcome. Waits for running actions, then runs those at the end. */
  async finish(signal: AbortSignal): Promise<void> {
    if (this.#isIdle) return;
    await this.#untilQuiet(signal);
    this.#isUndoing = false;
    this.#reached.clear();
    this.#beginDue();
    await this.#untilQuiet(signal);
    await this.#ledger.save(signal);
  }

  #untilQuiet(signal: AbortSignal): Promise<void> {
    return untilEnded([...this.#underWay.values()], signal);
  }

  /** Most policies have no actions: then nothing is requested or written. */
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
    // A running action writes its own record, and the others with it.
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
    const { clock, actionPorts } = this.#options;
    const begun = this.#ledger.begunOf(action, clock.now());
    if (this.#isResumed) {
      if (!(await this.#ledger.claim(begun, way.signal))) return;
    } else {
      this.#ledger.set(begun);
      clock.sleep(gatherMs, this.#signal).then(
        () => this.#ledger.saveBeside(this.#signal),
        () => undefined,
      );
    }
    const runner = await actionPorts?.runners(action.how.kind);
    const end =
      runner === undefined ? unsupported(action.how) : await this.#carryOut(action, runner, way);
    await this.#settle(action, end, begun.attempts - 1);
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
      // A machine that still receives requests must be deregistered before its pods end, not after.
      const isDue = action.how.kind === "deregisterTargets" && this.isPressing;
      await this.#ledger.save(signal, isDue ? "Between" : "Behind");
    };
    const deadlineAt = () => (action.at === "AtEnd" ? undefined : cloudDeadline(departure()));
    const isRolledBack = () => this.#isUndoing && !isMessage(action.how.kind);
    const onAsked = (isAsked: boolean) => {
      way.isAsked = isAsked;
    };
    const options = { clock, rng, signal, runner, isRolledBack, onAsked, keep, kept, deadlineAt };
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
    const { actionPorts, clock, rng, policy } = this.#options;
    const { name, undo, kind } = record;
    const known = policy().actions.find((one) => one.name === name && one.how.kind === kind);
    const action = known ?? actionOfRecord(record);
    const runner = action && (await actionPorts?.runners(action.how.kind));
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
    if (this.#isUndoing) await this.#ledger.saveUndo(this.#signal);
    else await this.#ledger.save(this.#signal);
  }

  /**
   * Handles an error of the pipeline itself. After a lost lease, the next leader resumes the
   * action.
   */
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

function heldBefore(): LastcallError {
  const problem =
    "Cannot complete the action: the departure is held, and whether the action was carried out is unknown";
  return new LastcallError("ACTION_INTERRUPTED", problem);
}

function untilEnded(running: readonly UnderWay[], signal: AbortSignal): Promise<void> {
  return unlessAborted(Promise.all(running.map(({ ended }) => ended)), signal);
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
