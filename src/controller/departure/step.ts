import type { MachineAddresses } from "../../contracts/action-runner.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { ClusterPorts, FleetView, GateSource } from "../../contracts/cluster.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";
import {
  type Departure,
  type DrainCounts,
  isLive,
  isNoticed,
  mayHoldBudgets,
} from "../../core/departure/departure.ts";
import {
  type BudgetDemand,
  conflictWith,
  contestable,
  type Demanding,
} from "../../core/departure/drain-reason.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import type { DrainVerdict } from "../../core/drain/drain-step.ts";
import type { TerminationMemory } from "../../core/drain/drain-time.ts";
import { reactionTo } from "../../core/notice/interruption.ts";
import type { DrainRule, Policy } from "../../core/policy/policy.ts";
import type { ReleasabilityQuestion, ReleaseAnswer } from "../../core/policy/release-answer.ts";
import type { Reason } from "../../core/reason/reason.ts";
import { type Instant, type Millis, seconds } from "../../core/time/time.ts";
import { assert, isLastcallError, type LastcallError } from "../../errors.ts";
import type { ActionPipeline } from "../action/action-pipeline.ts";
import type { DepartureWriter } from "../departure-writer.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { PendingCordons, StatusWriter } from "./status-writer.ts";

const longestRetryMs: Millis = seconds(10);

const longestUnderNoticeMs: Millis = seconds(1);

/** The longest pause between attempts: under a notice every second counts. */
export function longestPause(departure: Departure): Millis {
  return isNoticed(departure) ? longestUnderNoticeMs : longestRetryMs;
}

export interface RetryOptions {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly signal: AbortSignal;
  /** The longest pause, evaluated before each since a notice may arrive. Default 10 s. */
  readonly longestPause?: (() => Millis) | undefined;
  /** Whether to stop retrying after this retryable error. */
  readonly isEnough?: ((error: LastcallError) => boolean) | undefined;
  /** Called for each error that is retried. */
  readonly onRetry: (error: unknown) => void;
}

/**
 * Retries until `work` succeeds, the signal aborts, `isEnough` returns true, or an error is not
 * retryable.
 */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    options.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (!isLastcallError(error) || !error.retryable || options.isEnough?.(error)) throw error;
      options.onRetry(error);
      const mostMs = options.longestPause?.();
      await options.clock.sleep(backoffMs(attempt, options.rng, { mostMs }), options.signal);
    }
  }
}

/** Used if this process runs no actions, so that nothing reads the addresses. */
export async function noAddresses(): Promise<MachineAddresses> {
  return { node: [], pods: [] };
}

/** A departure, its policy, and its node as last seen by the watch. */
export interface RunSubject {
  readonly departure: Departure;
  readonly policy: Policy;
  readonly node: NodeFacts | undefined;
}

/** The dependencies that all departure runs share. */
export interface RunOptions extends ClusterPorts, Telemetry {
  readonly writer: DepartureWriter;
  readonly cordons: PendingCordons;
  readonly runningDrains: RunningDrains;
  /** How long pods took to terminate, learned over all drains. */
  readonly terminations: TerminationMemory;
  /** The current state of the watched fleet. */
  readonly view: () => FleetView;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the controller's own pod, if it runs in one. */
  readonly self?: string | undefined;
  /** Checks with the cloud now and shares the answer with the planner. */
  readonly askAboutRelease: (
    question: ReleasabilityQuestion,
    signal: AbortSignal,
  ) => Promise<ReleaseAnswer>;
  /** The external gates, asked again before a cordon that had to wait. */
  readonly gates: GateSource;
  /** Reads one node from the API server, not from the watch cache. */
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}

/** What a step works with: the shared dependencies and this departure. */
export interface StepContext extends RunOptions {
  readonly policy: Policy;
  readonly telemetry: DepartureTelemetry;
  readonly statusWriter: StatusWriter;
  readonly memory: RunMemory;
  readonly actions: ActionPipeline;
  /** The current departure. */
  readonly departure: () => Departure;
  /** Its node as last seen by the watch. */
  readonly node: () => NodeFacts | undefined;
  /** Records progress within the phase in status, timeline and log. */
  readonly report: (reason: Reason, detail?: string) => Promise<void>;
  /** Calls back each time the watch shows the departure. Returns the function to unsubscribe. */
  readonly onObserved: (listener: () => void) => () => void;
  /**
   * Retries until it succeeds, the signal aborts, an error is not retryable, or `isEnough` returns
   * true for an error.
   */
  readonly retry: <T>(
    work: () => Promise<T>,
    signal: AbortSignal,
    isEnough?: (error: LastcallError) => boolean,
  ) => Promise<T>;
}

/**
 * State that steps of one run pass to later steps. It is not persisted: a new leader starts without
 * it.
 */
export interface RunMemory {
  /** The node to drain, as of the last identity check. */
  target?: NodeFacts;
  /** A precondition of the drain that was not met in time; the drain proceeds without it. */
  missed?: Pick<PhaseResult, "reason" | "detail">;
  /** When the node was cordoned (monotonic); the cordon checks its identity as well. */
  cordonedAtMs?: number;
  /** The uids of the pods that were on the node when its first drain started. */
  beganWith?: ReadonlySet<string>;
  /** The drain's counters, so that an interrupted drain continues counting. */
  counts?: DrainCounts;
  drained?: DrainEnd;
  /** When the drain of late pods started, which is timed separately. */
  lateSinceAt?: Instant;
  /** Recounts the pods of an interrupted drain by a fresh list. */
  countAgain?: () => Promise<void>;
}

export interface DrainEnd {
  readonly verdict: Exclude<DrainVerdict, "Running">;
  /** When nothing was left to do. */
  readonly endedAt: Instant;
  /** The drain rule that was applied. */
  readonly rule: DrainRule;
  /** The first thing that blocked it. */
  readonly detail?: string | undefined;
  /** The result compared with the first plan. */
  readonly account?: string | undefined;
  /** Whether any pod of the node had a persistent volume. */
  readonly volumes: "Some" | "None";
  /** The remaining pods, which a drain does not evict. */
  readonly staying: readonly PodFacts[];
}

/** One step of a phase. A result ends the phase; undefined continues with the next step. */
export type Step = (context: StepContext, signal: AbortSignal) => Promise<PhaseResult | undefined>;

export async function runSteps(
  steps: readonly Step[],
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  for (const step of steps) {
    const result = await step(context, signal);
    if (result !== undefined) return result;
    signal.throwIfAborted();
  }
  return undefined;
}

/** The node that an earlier step identified. */
export function targetOf({ memory }: StepContext): NodeFacts {
  assert(memory.target !== undefined, "a node is identified before its pods are asked to leave");
  return memory.target;
}

/**
 * Whether somebody else ends the machine: the policy leaves the release to others, or the cloud
 * takes the machine and the policy does not release it before, or could not.
 */
export function isCloudsToTake({ departure, policy }: StepContext): boolean {
  if (policy.instance.release === "None") return true;
  if (!isNoticed(departure())) return false;
  const { phase, reason } = departure().status;
  const hasFailed = phase === "Releasing" && reason === "ReleaseFailed";
  return hasFailed || reactionTo(departure(), policy) !== "Release";
}

/**
 * The drains that are running, so that a drain that would compete with another for a budget waits
 * for it. Each drain's demands are in its Departure's status as well; this knows them before the
 * watch shows them, and knows sooner when a drain has ended.
 */
export class RunningDrains {
  readonly #running = new Map<string, readonly BudgetDemand[]>();
  readonly #over = new Set<string>();
  readonly #listeners = new Set<() => void>();

  /**
   * Returns a conflict such as `n1-3f2a, over shop/web and shop/cache`; undefined if there is none.
   * `known` are all departures: one that is no longer among them holds nothing.
   */
  conflictOf(
    departure: Departure,
    plan: Demanding,
    known: readonly Departure[],
  ): string | undefined {
    this.forget(known);
    const running = known
      .filter(({ uid }) => uid !== departure.uid && !this.#over.has(uid))
      .map((other) => ({ name: other.name, demands: this.#demandsOf(other) }));
    const found = conflictWith(running, plan);
    return found && `${found.drains.join(" and ")}, over ${found.budgets.join(" and ")}`;
  }

  /** Registers a drain. Returns what it holds of the budgets, which its first plan determines. */
  enter(departure: Departure, plan: Demanding): readonly BudgetDemand[] {
    const { uid, status } = departure;
    const held = this.#running.get(uid) ?? status.demands ?? contestable(plan.demands);
    this.#running.set(uid, held);
    this.#over.delete(uid);
    return held;
  }

  leave({ uid }: Departure): void {
    this.#over.add(uid);
    if (!this.#running.delete(uid)) return;
    for (const listener of this.#listeners) listener();
  }

  onLeave(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets drains whose departures are no longer among `known`, which are all departures. */
  forget(known: readonly Departure[]): void {
    if (this.#over.size + this.#running.size === 0) return;
    const there = new Set(known.map(({ uid }) => uid));
    for (const uid of [...this.#over, ...this.#running.keys()]) {
      if (there.has(uid)) continue;
      this.#over.delete(uid);
      this.#running.delete(uid);
    }
  }

  #demandsOf(departure: Departure): readonly BudgetDemand[] {
    if (!isLive(departure)) return [];
    const recorded = mayHoldBudgets(departure.status.phase) ? departure.status.demands : undefined;
    return this.#running.get(departure.uid) ?? recorded ?? [];
  }
}
