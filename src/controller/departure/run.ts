import type { MachineAddresses } from "../../contracts/action-runner.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import {
  type Departure,
  type DepartureStatus,
  isLive,
  isNoticed,
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
import { type Interruption, interruptionOf } from "../../core/notice/interruption.ts";
import { policyFor, reactionTo } from "../../core/notice/reaction.ts";
import type { Policy } from "../../core/policy/policy.ts";
import type { Reason } from "../../core/reason/reason.ts";
import type { Instant } from "../../core/time/time.ts";
import { ActionPipeline } from "../action/action-pipeline.ts";
import {
  awaitLastActions,
  awaitRequiredActions,
  beginActions,
  undoActions,
} from "../action/action-steps.ts";
import { awaitLoadBalancers, awaitVolumes, drained } from "./after-drain.ts";
import { freeCapacity, reserveCapacity } from "./capacity-reservation.ts";
import { cordon, MarkUpkeep, noticeOf, rolledBack, uncordon } from "./cordon.ts";
import { DepartureTelemetry } from "./departure-telemetry.ts";
import { drain } from "./drain.ts";
import {
  checkGates,
  checkRelease,
  identifyNode,
  isToCordonAtOnce,
  lookAhead,
  prepared,
} from "./prepare.ts";
import { awaitBindings, awaitMachine, releaseAfter } from "./release.ts";
import { longestPause, retrying } from "./retry.ts";
import { StatusWriter } from "./status-writer.ts";
import { isCloudsToTake, type RunOptions, runSteps, type Step, type StepContext } from "./step.ts";

/** What a departure that has the time looks at before its cordon. */
const looking: readonly Step[] = [identifyNode, lookAhead, checkGates, checkRelease];
/** What a departure that has the time makes before its drain. */
const making: readonly Step[] = [reserveCapacity, awaitRequiredActions];
const draining: readonly Step[] = [drain, awaitVolumes, awaitLoadBalancers, drained];
const releasing: readonly Step[] = [awaitBindings, releaseAfter(draining)];

/**
 * What a departure goes through, in order. The steps of its phase run one after another until one
 * of them ends the phase; a run that is taken up again begins the phase anew, and each step finds
 * out what was done already.
 */
function stepsOf(context: StepContext): readonly Step[] {
  switch (context.departure().status.phase) {
    case "Preparing":
      return isToCordonAtOnce(context)
        ? [beginActions, cordon, prepared]
        : [...looking, cordon, beginActions, ...making, prepared];
    case "Draining":
      return isOnlyCordoned(context)
        ? [beginActions, awaitMachine]
        : [beginActions, identifyNode, ...draining];
    case "Releasing":
      return [beginActions, freeCapacity, awaitMachine, awaitLastActions, ...releasing];
    case "RollingBack":
      return [freeCapacity, undoActions, uncordon, rolledBack];
    default:
      // Scheduled and Held are the plan reconciler's; a run begins with the event that ends them.
      return [];
  }
}

/** A drain that has begun goes on, whatever the cause is by now. */
function isOnlyCordoned({ departure, policy, memory }: StepContext): boolean {
  const hasBegun = (memory.counts ?? departure().status.drain) !== undefined;
  return !hasBegun && reactionTo(departure(), policy) === "Cordon";
}

/** Without anybody who could carry out an action nobody asks for them. */
async function noAddresses(): Promise<MachineAddresses> {
  return { node: [], pods: [] };
}

/** A departure, the policy to carry it out by, and its node as the watch has shown it last. */
export interface RunSubject {
  readonly departure: Departure;
  readonly policy: Policy;
  readonly node: NodeFacts | undefined;
}

/**
 * One departure under way, from its beginning to its outcome. It keeps nothing that the Departure
 * does not say: a new leader makes a new run from the resource and goes on in the same phase.
 */
export class DepartureRun {
  readonly #context: StepContext;
  readonly #upkeep: MarkUpkeep;
  #departure: Departure;
  /** How it stands once the write of its beginning, which is under way, is through. */
  #beginning: DepartureStatus | undefined;
  /** As the watch has shown it last. */
  #seen: Departure | undefined;
  #node: NodeFacts | undefined;
  /** Ends the steps of the phase that it is in. */
  #phase = new AbortController();
  #pending: Interruption | undefined;
  #abandoned = false;
  /**
   * A notice has changed the cause, and the policy reacts otherwise to that: the phase begins anew.
   */
  #isReconsidered = false;
  #policy: Policy;
  /** Whether its node was known when its policy was chosen. */
  #isNodeKnown: boolean;
  readonly #observers = new Set<() => void>();
  /** What the cloud had said as its phase began. */
  #toldBefore: string;

  constructor({ departure, policy, node }: RunSubject, options: RunOptions) {
    this.#departure = departure;
    this.#node = node;
    this.#policy = policy;
    this.#toldBefore = noticeOf(departure);
    this.#isNodeKnown = node?.uid === departure.node.uid;
    const policyNow = () => this.#policy;
    const { executor, clock, rng } = options;
    const telemetry = new DepartureTelemetry(executor.telemetry, clock);
    this.#upkeep = new MarkUpkeep(executor, telemetry);
    const statusWriter = new StatusWriter(options);
    const retry: StepContext["retry"] = (work, signal, isEnough) =>
      retrying(work, {
        ...{ clock, rng, signal, isEnough },
        longestPause: () => longestPause(this.#departure),
        onRetry: (error) => telemetry.faulted("retrying", this.#departure, error),
      });
    const now = () => this.#departure;
    this.#context = {
      ...{ ...options, telemetry, statusWriter, retry, memory: {} },
      get policy() {
        return policyNow();
      },
      actions: new ActionPipeline({
        ...{ executor, clock, rng, telemetry, statusWriter, retry, cordons: options.cordons },
        policy: policyNow,
        machineAddresses: options.actionPorts?.addresses ?? noAddresses,
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

  /** The status to decide upon: a beginning that is being written counts as written. */
  get newestStatus(): DepartureStatus {
    return this.#beginning ?? this.#departure.status;
  }

  /** Tells the run what the watch has seen last. */
  observe(departure: Departure, node: NodeFacts | undefined): void {
    this.#node = node;
    if (!this.#isNodeKnown && node?.uid === departure.node.uid) this.#meet(node);
    if (departure !== this.#seen) this.#take(departure);
    this.#upkeep.look(this.#departure, departure, node);
    const found = interruptionOf(this.#departure, node);
    if (found === undefined || !this.#handles(found)) return;
    this.#pending = found;
    this.#phase.abort();
  }

  /**
   * A notice may be heard before its node, which has just joined, and is acted upon at once by the
   * defaults. From now on the policy of the node counts.
   */
  #meet(node: NodeFacts): void {
    this.#isNodeKnown = true;
    const policy = policyFor(this.#departure, node, this.#context.view().policies);
    if (policy.name === this.#policy.name) return;
    this.#policy = policy;
    this.#isReconsidered = true;
    this.#phase.abort();
  }

  /** In a burst of notices each run hears of every change to the others: only its own is news. */
  #take(departure: Departure): void {
    this.#seen = departure;
    const { policy } = this.#context;
    const { resourceVersion, status, cause } = this.#departure;
    const reaction = reactionTo(this.#departure, policy);
    this.#departure = { ...departure, resourceVersion, status };
    // A node that was only cordoned for a recommendation is drained when its interruption comes.
    // One that leaves by plan is being drained already.
    const isDraining = isVoluntary(cause);
    if (!isDraining && reactionTo(departure, policy) !== reaction) {
      this.#isReconsidered = true;
      this.#phase.abort();
    }
    this.#recordNotice();
    if (departure.cause !== cause) this.#context.actions.reconsider();
    for (const observer of this.#observers) observer();
  }

  /** A departure that has begun by the plan has its notice in the timeline all the same. */
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

  /** The Departure was deleted: nothing more is done for it, its marks are cleared as orphans. */
  abandon(): void {
    this.#abandoned = true;
    this.#phase.abort();
  }

  /** Runs to the end; `first` is what set it going, absent when a run is taken up again. */
  async run(signal: AbortSignal, first?: PhaseResult): Promise<void> {
    const { actions } = this.#context;
    // A run that is taken up again has new ones: none of the old may go on beside them.
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    actions.open(until, first === undefined ? "Resumed" : "New");
    try {
      await this.#runPhases(signal, first);
      // Nobody but this run knows any more what it takes to undo them.
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
      while (isLive(this.#departure) && !this.#abandoned) {
        result ??= await this.#runPhase(signal);
        if (result !== undefined && !(await this.#advance(result))) return;
        result = undefined;
        if (isUnderWay(this.#departure)) continue;
        // It is held after all: the plan reconciler begins it again, unless a notice has come
        // meanwhile.
        if (!isNoticed(this.#departure)) return;
        result = { event: "Noticed", reason: "Noticed" };
      }
    } finally {
      // One that a fault has stopped in mid-drain holds its budgets until it is taken up again.
      const over = this.#abandoned || !mayHoldBudgets(this.#departure.status.phase);
      if (over) this.#context.runningDrains.leave(this.#departure);
      const isOn = isLive(this.#departure) && isUnderWay(this.#departure);
      if (this.#abandoned || !isOn) await freeCapacity(this.#context);
    }
  }

  /**
   * While a machine is being released by us, its node is meant to go: the release sees to it. Where
   * the cloud is waited for, the node's going tells, or that another machine has taken it over.
   */
  #handles(found: Interruption): boolean {
    if (this.#departure.status.phase !== "Releasing") return true;
    if (!isCloudsToTake(this.#context)) return false;
    const { machine, reason } = this.#departure.status;
    const letGoByUs = machine !== undefined && reason !== "ReleaseFailed";
    return found.event !== "Withdrawn" || !letGoByUs;
  }

  async #advance(result: PhaseResult): Promise<boolean> {
    const { clock, statusWriter, telemetry } = this.#context;
    const change: PhaseChange = { ...result, at: clock.now(), policy: this.#policyOfHook };
    const before = this.#departure;
    if (!isUnderWay(before)) this.#beginning = statusAfter(before, change);
    const after = this.#isUrgent(result)
      ? this.#advanceUnwritten(change)
      : await statusWriter.write(before, (fresh) => this.#statusAfter(fresh, change));
    this.#beginning = undefined;
    if (after === undefined) return false;
    this.#departure = after;
    if (after.status.phase !== before.status.phase) {
      this.#toldBefore = noticeOf(after);
      telemetry.phaseChanged(before, after);
    }
    return true;
  }

  /**
   * What a person has said since the decision keeps a departure from beginning; and a notice that
   * came while a roll-back was coming to its end is not lost with that.
   */
  #statusAfter(fresh: Departure, change: PhaseChange): DepartureStatus | undefined {
    if (change.event === "Due" && isPutOff(fresh, change.at)) return undefined;
    const isNews = change.event === "RolledBack" && noticeOf(fresh) !== this.#toldBefore;
    const found = isNews ? interruptionOf(fresh, this.#node) : undefined;
    return statusAfter(fresh, found?.event === "Noticed" ? { ...found, at: change.at } : change);
  }

  /** What completes its machine's lifecycle hook may have to know it after its node is gone. */
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
   * Under a notice neither cordon nor first eviction waits for the status; it is written after
   * them.
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

  /** What ends the departure's phase; undefined: look again. */
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
      throw error;
    }
  }

  /**
   * A watch may lag behind: that a node is gone or replaced is believed only after a fresh look.
   */
  async #confirmed(found: Interruption): Promise<PhaseResult | undefined> {
    if (found.event !== "NodeGone" && found.event !== "MachineReplaced") return found;
    const fresh = await this.#context.readNode(this.#departure.node.name);
    const again = interruptionOf(this.#departure, fresh);
    if (again?.event !== found.event) return undefined;
    await this.#countAgain();
    return found;
  }

  /** What is left of a drain that ends so; a fault in looking leaves it as it was seen last. */
  async #countAgain(): Promise<void> {
    const { memory, telemetry } = this.#context;
    if (this.#departure.status.phase !== "Draining") return;
    await memory
      .countAgain?.()
      .catch((error: unknown) => telemetry.faulted("pods-not-counted", this.#departure, error));
  }
}

/** Whether somebody has had the last word on a departure that is to begin. */
function isPutOff(departure: Departure, at: Instant): boolean {
  const { cause, hold, departAt = at, deletionAt, withdrawnAt } = departure;
  if (deletionAt !== undefined || withdrawnAt !== undefined) return true;
  return isVoluntary(cause) && (hold || (cause === "Manual" && departAt > at));
}
