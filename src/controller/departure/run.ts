import type { NodeFacts } from "../../core/cluster/node.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
  isPostponed,
  isPressing,
  isUnderWay,
  isVoluntary,
  mayHoldBudgets,
} from "../../core/departure/departure.ts";
import {
  type PhaseChange,
  type PhaseResult,
  statusAfter,
  statusNoticed,
} from "../../core/departure/ledger.ts";
import {
  type Interruption,
  interruptionOf,
  policyFor,
  reactionTo,
} from "../../core/notice/interruption.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { isLastcallError, type LastcallError } from "../../errors.ts";
import { ActionPipeline } from "../action/action-pipeline.ts";
import { freeCapacity } from "./capacity-reservation.ts";
import { stepsOf } from "./departure-steps.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { Failing, mostFailingMs, RequestRetries } from "./failing.ts";
import { MarkUpkeep, noticeOf } from "./prepare.ts";
import { RunningMachines } from "./running-machine.ts";
import { StatusWriter } from "./status-writer.ts";
import {
  isCloudsToTake,
  longestPause,
  noAddresses,
  type RunOptions,
  type RunSubject,
  runSteps,
  type StepContext,
} from "./step.ts";

/** A phase whose step was refused is tried again after this. */
const phaseAgainMs: Millis = seconds(20);

/**
 * Runs one departure from its start to its outcome. All state that matters is in the Departure: a
 * new leader creates a new run from the resource and continues in the same phase.
 */
export class DepartureRun {
  readonly #context: StepContext;
  readonly #upkeep: MarkUpkeep;
  #departure: Departure;
  /** The status of the first phase while it is being written. */
  #beginning: DepartureStatus | undefined;
  /** The departure as last seen by the watch. */
  #seen: Departure | undefined;
  #node: NodeFacts | undefined;
  /** Aborts the steps of the current phase. */
  #phase = new AbortController();
  #pending: Interruption | undefined;
  #abandoned = false;
  /**
   * A notice has changed the cause, and the policy reacts differently to it: the phase restarts.
   */
  #isReconsidered = false;
  /** What ended the phase's steps before their time. */
  readonly #failing: Failing;
  readonly #retries: RequestRetries;
  #policy: Policy;
  /** Whether the node was known when the policy was selected. */
  #isNodeKnown: boolean;
  readonly #observers = new Set<() => void>();
  /** The cloud's notice when the phase started. */
  #noticeBefore: string;

  constructor({ departure, policy, node }: RunSubject, options: RunOptions) {
    this.#departure = departure;
    this.#node = node;
    this.#policy = policy;
    this.#noticeBefore = noticeOf(departure);
    this.#isNodeKnown = node?.uid === departure.node.uid;
    const policyNow = () => this.#policy;
    const { clock, rng, actionPorts } = options;
    this.#failing = new Failing(clock);
    const telemetry = new DepartureTelemetry(options, clock);
    this.#upkeep = new MarkUpkeep(options, telemetry);
    const statusWriter = new StatusWriter(options);
    this.#retries = new RequestRetries({
      ...{ clock, rng },
      limitMs: () => mostFailingMs(this.#departure, this.#policy),
      longestPause: () => longestPause(this.#departure),
      onRetry: (error) => telemetry.faulted("retrying", this.#departure, error),
    });
    const { retry } = this.#retries;
    const now = () => this.#departure;
    this.#context = {
      ...{ ...options, telemetry, statusWriter, retry, memory: {} },
      get policy() {
        return policyNow();
      },
      actions: new ActionPipeline({
        ...{ actionPorts, clock, rng, telemetry, statusWriter, retry, cordons: options.cordons },
        policy: policyNow,
        machineAddresses: actionPorts?.addresses ?? noAddresses,
        departure: now,
        node: () => this.#node,
      }),
      departure: now,
      node: () => this.#node,
      report: (reason, detail) => this.#report(reason, detail),
      onObserved: (listener) => {
        this.#observers.add(listener);
        return () => this.#observers.delete(listener);
      },
    };
  }

  get departure(): Departure {
    return this.#departure;
  }

  /** The status to base decisions on: a start that is being written counts as written. */
  get newestStatus(): DepartureStatus {
    return this.#beginning ?? this.#departure.status;
  }

  /** Passes what the watch has seen to the run. */
  observe(departure: Departure, node: NodeFacts | undefined): void {
    this.#node = node;
    if (!this.#isNodeKnown && node?.uid === departure.node.uid) this.#adoptPolicyOf(node);
    if (departure !== this.#seen) this.#take(departure);
    this.#upkeep.look(this.#departure, departure, node);
    const found = interruptionOf(this.#departure, node);
    if (found === undefined || !this.#handles(found)) return;
    this.#pending = found;
    this.#phase.abort();
  }

  /**
   * A notice may arrive before the watch shows its new node, and is then handled with the defaults.
   * From now on the node's policy applies.
   */
  #adoptPolicyOf(node: NodeFacts): void {
    this.#isNodeKnown = true;
    const policy = policyFor(this.#departure, node, this.#context.view().policies);
    if (policy.name === this.#policy.name) return;
    this.#policy = policy;
    this.#isReconsidered = true;
    this.#phase.abort();
  }

  /** Takes over a change of this departure; a burst reports the changes of all departures. */
  #take(departure: Departure): void {
    this.#seen = departure;
    const { policy } = this.#context;
    const { resourceVersion, status, cause } = this.#departure;
    const reaction = reactionTo(this.#departure, policy);
    this.#departure = { ...departure, resourceVersion, status };
    // A node that was only cordoned for a recommendation is drained when its interruption comes. A
    // planned departure is being drained already.
    const isDraining = isVoluntary(cause);
    if (!isDraining && reactionTo(departure, policy) !== reaction) {
      this.#isReconsidered = true;
      this.#phase.abort();
    }
    this.#recordNotice();
    if (departure.cause !== cause) this.#context.actions.reconsider();
    for (const observer of this.#observers) observer();
  }

  /** Adds a notice to the timeline of a departure that had started as planned. */
  #recordNotice(): void {
    const departure = this.#departure;
    if (!isNoticed(departure) || !isUnderWay(departure)) return;
    const { clock, statusWriter, telemetry } = this.#context;
    const at = clock.now();
    const status = statusNoticed(departure, at);
    if (status === undefined) return;
    this.#departure = { ...departure, status };
    statusWriter
      .write(departure, (fresh) => statusNoticed({ ...departure, status: fresh.status }, at))
      .catch((error: unknown) => telemetry.faulted("notice-not-noted", departure, error));
  }

  /** Stops, because the Departure was deleted. Its node marks are cleared as orphans. */
  abandon(): void {
    this.#abandoned = true;
    this.#phase.abort();
  }

  /** Runs to the end. `first` is the event that started it, undefined for a resumed run. */
  async run(signal: AbortSignal, first?: PhaseResult): Promise<void> {
    const { actions } = this.#context;
    // A resumed run starts its own actions: none of the old ones may continue beside them.
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    actions.open(until, first === undefined ? "Resumed" : "New");
    try {
      await this.#runPhases(signal, first);
      // Only this run still knows how to undo them.
      if (this.#abandoned) await actions.undo(until);
      else if (!isLive(this.#departure)) await actions.finish(until);
    } finally {
      over.abort();
    }
  }

  async #runPhases(signal: AbortSignal, first: PhaseResult | undefined): Promise<void> {
    let result: PhaseResult | undefined = first;
    if (first === undefined && isLive(this.#departure)) this.#recordNotice();
    try {
      result ??= await this.#interruptedBefore();
      while (isLive(this.#departure) && !this.#abandoned) {
        result ??= await this.#runPhase(signal);
        if (result !== undefined) {
          if (!(await this.#advance(await this.#withEvidence(result, signal)))) return;
          result = undefined;
        }
        if (isUnderWay(this.#departure)) continue;
        // It is held after all: the plan reconciler starts it again, unless a notice has arrived.
        if (!isNoticed(this.#departure)) return;
        result = { event: "Noticed", reason: "Noticed" };
      }
    } finally {
      // A drain that failed midway holds its budgets until the departure is resumed.
      const over = this.#abandoned || !mayHoldBudgets(this.#departure.status.phase);
      if (over) this.#context.runningDrains.leave(this.#departure);
      const isOn = isLive(this.#departure) && isUnderWay(this.#departure);
      if (this.#abandoned || !isOn) await freeCapacity(this.#context);
    }
  }

  /** Before a step acts: the cordon would overwrite that a person has uncordoned the node. */
  async #interruptedBefore(): Promise<PhaseResult | undefined> {
    const found = interruptionOf(this.#departure, this.#node);
    return found !== undefined && this.#handles(found) ? this.#confirmed(found) : undefined;
  }

  /**
   * Whether an interruption concerns the current phase. While we release the machine, its node is
   * expected to disappear. While we wait for the cloud, a node that disappears, or has another
   * machine, ends the wait; and so it does while our release is retried, since a release whose
   * answers are lost may have been done.
   */
  #handles(found: Interruption): boolean {
    const { machine, reason, phase } = this.#departure.status;
    if (phase !== "Releasing") return true;
    const isGone = found.event === "NodeGone" || found.event === "MachineReplaced";
    if (isGone && reason === "ReleaseRetried") return true;
    if (!isCloudsToTake(this.#context)) return false;
    const isReleasedByUs = machine !== undefined && reason !== "ReleaseFailed";
    const isUndone = found.event === "Withdrawn" || found.event === "Cancelled";
    return !isUndone || !isReleasedByUs;
  }

  async #advance(result: PhaseResult): Promise<boolean> {
    const { clock, statusWriter, telemetry } = this.#context;
    const change: PhaseChange = {
      ...{ ...result, at: clock.now(), policy: this.#policyOfHook },
      nodeCreatedAt: this.#ownNode?.createdAt,
    };
    const before = this.#departure;
    if (!isUnderWay(before)) this.#beginning = statusAfter(before, change);
    const after = this.#isUrgent(result)
      ? this.#advanceUnwritten(change)
      : await statusWriter.write(before, (fresh) => this.#statusAfter(fresh, change));
    this.#beginning = undefined;
    if (after === undefined) return false;
    this.#departure = after;
    if (after.status.phase !== before.status.phase) {
      this.#failing.ends();
      this.#noticeBefore = noticeOf(after);
      telemetry.phaseChanged(before, after);
    }
    return true;
  }

  /**
   * A hold, a withdrawal or a later time that a person has set since the decision prevents the
   * start. A notice that arrived at the end of a roll-back is kept.
   */
  #statusAfter(fresh: Departure, change: PhaseChange): DepartureStatus | undefined {
    if (change.event === "Due" && isPostponed(fresh, change.at)) return undefined;
    const isNews = change.event === "RolledBack" && noticeOf(fresh) !== this.#noticeBefore;
    const found = isNews ? interruptionOf(fresh, this.#node) : undefined;
    return statusAfter(fresh, found?.event === "Noticed" ? { ...found, at: change.at } : change);
  }

  /** Not another one that has its name now. */
  get #ownNode(): NodeFacts | undefined {
    return this.#node?.uid === this.#departure.node.uid ? this.#node : undefined;
  }

  /** Kept for the completion of the lifecycle hook, which may follow the end of the node. */
  get #policyOfHook(): string | undefined {
    const { name, instance } = this.#policy;
    return instance.lifecycleHook === "Abandon" ? name : undefined;
  }

  async #report(reason: Reason, detail: string | undefined): Promise<void> {
    const { statusWriter, telemetry } = this.#context;
    const after = await statusWriter.report(this.#departure, { reason, detail });
    if (after === undefined) return;
    const { status } = after;
    this.#departure = { ...this.#departure, resourceVersion: after.resourceVersion, status };
    telemetry.reported(this.#departure);
  }

  /**
   * Under a notice, cordon and first eviction do not wait for status writes, which follow them.
   */
  #isUrgent({ event }: PhaseResult): boolean {
    const isPressed = isPressing(this.#departure, this.#context.clock.now());
    return isPressed && (event === "Noticed" || event === "Prepared");
  }

  #advanceUnwritten(change: PhaseChange): Departure {
    const status = statusAfter(this.#departure, change);
    if (status === undefined) return this.#departure;
    this.#context.statusWriter.writeLater(this.#departure, change);
    return { ...this.#departure, status };
  }

  /** Runs the current phase. Undefined if it has to be evaluated again. */
  async #runPhase(signal: AbortSignal): Promise<PhaseResult | undefined> {
    this.#phase = new AbortController();
    this.#pending = undefined;
    this.#isReconsidered = false;
    const stop = AbortSignal.any([signal, this.#phase.signal]);
    try {
      return await runSteps(stepsOf(this.#context), this.#context, stop);
    } catch (error) {
      if (this.#abandoned) return undefined;
      if (signal.aborted) throw error;
      if (this.#pending !== undefined) return this.#confirmed(this.#pending);
      if (this.#isReconsidered) return undefined;
      if (mostFailingMs(this.#departure, this.#policy) === undefined || !isLastcallError(error))
        throw error;
      return this.#afterFault(error, signal);
    }
  }

  /**
   * A voluntary departure whose requests keep failing is given up, so that its node is free again
   * and the refusal is told. Until then the phase is tried again.
   */
  async #afterFault(error: LastcallError, signal: AbortSignal): Promise<PhaseResult | undefined> {
    const { clock, telemetry } = this.#context;
    this.#failing.begins();
    if (
      this.#retries.isExhausted(error) ||
      this.#failing.lasts(mostFailingMs(this.#departure, this.#policy))
    ) {
      return { event: "GaveUp", reason: "RequestRefused", detail: error.message };
    }
    telemetry.faulted("retrying", this.#departure, error);
    const stop = AbortSignal.any([signal, this.#phase.signal]);
    await clock.sleep(phaseAgainMs, stop).catch(() => signal.throwIfAborted());
    return undefined;
  }

  /** Confirms by a read that a node is gone or replaced: a watch may lag behind. */
  async #confirmed(found: Interruption): Promise<PhaseResult | undefined> {
    if (found.event !== "NodeGone" && found.event !== "MachineReplaced") return found;
    const fresh = await this.#context.readNode(this.#departure.node.name);
    const again = interruptionOf(this.#departure, fresh);
    if (again?.event !== found.event) return undefined;
    await this.#countAgain();
    return found;
  }

  async #withEvidence(result: PhaseResult, signal: AbortSignal): Promise<PhaseResult> {
    const departure = this.#departure;
    if (departure.status.phase === "RollingBack") return result;
    const machines = new RunningMachines(this.#context);
    const found = await machines.withEvidence(result, { departure, policy: this.#policy }, signal);
    // A notice that has arrived since stands, whatever the cloud shows.
    return isNoticed(this.#departure) ? result : found;
  }

  /** Recounts the remaining pods of a drain that ends early; keeps the last count on errors. */
  async #countAgain(): Promise<void> {
    const { memory, telemetry } = this.#context;
    if (this.#departure.status.phase !== "Draining") return;
    await memory
      .countAgain?.()
      .catch((error: unknown) => telemetry.faulted("pods-not-counted", this.#departure, error));
  }
}
