import type { LeaveOptions, NodePods, RestartOptions } from "../contracts/cluster.ts";
import type { Rng } from "../core/chance/chance.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { BudgetFacts, OwnerFacts, PodFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import { type EvictionAnswer, recordAnswer, recordSending } from "../core/drain/drain-answer.ts";
import type { DrainAct, DrainProgress } from "../core/drain/drain-progress.ts";
import {
  type DrainState,
  type DrainStep,
  longestWait,
  nextDrainActs,
} from "../core/drain/drain-step.ts";
import type { TerminationMemory } from "../core/drain/drain-time.ts";
import { type DrainPlan, isUnreachable, planDrain } from "../core/drain-plan/drain-plan.ts";
import { marksOf } from "../core/drain-plan/pod-obstacle.ts";
import type { DrainRule } from "../core/policy/policy.ts";
import { between, type Instant, millis } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";

/** Sends the requests that make pods leave to the API server. */
export interface DrainActor extends Pick<NodePods, "evict"> {
  remove(
    pod: PodIdentity,
    options: LeaveOptions & { readonly reason: ForceReason },
  ): Promise<EvictionAnswer>;
  restartOwner(
    pod: PodIdentity,
    owner: OwnerFacts,
    options: RestartOptions,
  ): Promise<EvictionAnswer>;
}

export interface DrainDriverOptions {
  readonly node: NodeFacts;
  readonly actor: DrainActor;
  /** The clock that deadlines refer to. */
  readonly now: () => Instant;
  readonly rng: Rng;
  /** How long pods took to terminate. */
  readonly terminations: TerminationMemory;
  /** The uid of the pod that runs this process, if it is on the node. */
  readonly self?: string | undefined;
  /** Called when an act was sent or its response arrived, because the next step may differ. */
  readonly onProgress?: (() => void) | undefined;
}

/** The input of one step. */
export interface DrainView {
  /** The node as last seen; absent: as when the drain began. */
  readonly node?: NodeFacts | undefined;
  /** Whether the cloud takes the machine, with a deadline or without. */
  readonly isNoticed: boolean;
  readonly livePods: readonly PodFacts[];
  /** Those of them that are known to belong to the node; only these are evicted. */
  readonly ownPods: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly rule: DrainRule;
  readonly startedAt: Instant;
  /** The uids of the pods that existed when the drain started; absent: those of the first step. */
  readonly beganWith?: ReadonlySet<string> | undefined;
  /** When the machine may be gone, under a notice. */
  readonly deadlineAt: Instant | undefined;
  /** Since when the drain has known that deadline. */
  readonly knownAt: Instant;
}

/**
 * Drives the drain of one node with the plan and the steps of core. Its owner passes it the pods,
 * carries out the acts of each step, and steps again when a pod changes, a response arrives or
 * `askAgainAt` is reached. The controller does so on a watch, the agent's fallback on a list every
 * second.
 */
export class DrainDriver {
  readonly #options: DrainDriverOptions;
  #progress: DrainProgress = {};
  #plan: DrainPlan | undefined;
  #firstPlan: DrainPlan | undefined;
  /** What the plan was made for; see `#planFor`. */
  #planBasis: string | undefined;
  #deadlineAt: Instant | undefined;
  /**
   * Over all plans so far, because the newest one may no longer contain the job that was waited
   * for.
   */
  #longestWaitMs = millis(0);
  #isOver = false;
  #beganWith: ReadonlySet<string> | undefined;

  constructor(options: DrainDriverOptions) {
    this.#options = options;
  }

  /** The plan that the drain started with. */
  get firstPlan(): DrainPlan | undefined {
    return this.#firstPlan;
  }

  step(seen: DrainView): { readonly step: DrainStep; readonly plan: DrainPlan } {
    const { terminations, now: clock } = this.#options;
    const { livePods, ownPods, startedAt, rule } = seen;
    this.#beganWith ??= seen.beganWith ?? new Set(livePods.map(({ uid }) => uid));
    const now = clock();
    const state = { livePods, startedAt, rule, known: terminations.records, now };
    let plan = this.#planFor(seen, now);
    let step = this.#stepBy(plan, state);
    const own = new Set(ownPods.map(({ uid }) => uid));
    if (step.unplanned.some(({ uid }) => own.has(uid))) {
      // A pod has arrived despite the cordon: it is planned like the others.
      this.#plan = undefined;
      plan = this.#planFor(seen, now);
      step = this.#stepBy(plan, state);
    }
    this.#progress = step.progress;
    this.#deadlineAt = step.deadlineAt;
    for (const one of step.ended) terminations.remember(one);
    return { step, plan };
  }

  /**
   * Sends one act of a step and records the response; undefined if the signal has aborted by then.
   */
  async carryOut(
    act: DrainAct,
    about: { readonly dueAt?: Instant | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): Promise<EvictionAnswer | undefined> {
    const { now, rng } = this.#options;
    const answer = await this.#ask(act, about.dueAt).catch(
      (error: unknown): EvictionAnswer => ({ kind: "NoAnswer", message: messageOf(error) }),
    );
    if (about.signal?.aborted === true) return undefined;
    const [progress, deadlineAt] = [this.#progress, this.#deadlineAt];
    this.#progress = recordAnswer({ progress, act, answer, deadlineAt, now: now(), rng });
    this.#options.onProgress?.();
    return answer;
  }

  /** Ends the drain: acts that are still queued are not sent. */
  end(): void {
    this.#isOver = true;
  }

  #stepBy(plan: DrainPlan, state: Omit<DrainState, "plan" | "progress">): DrainStep {
    this.#longestWaitMs = millis(Math.max(this.#longestWaitMs, longestWait(plan)));
    const longestWaitMs = this.#longestWaitMs;
    return nextDrainActs({ ...state, plan, progress: this.#progress, longestWaitMs });
  }

  #planFor(seen: DrainView, now: Instant): DrainPlan {
    const { ownPods, budgets, rule, startedAt, deadlineAt, knownAt } = seen;
    const { self } = this.#options;
    const node = seen.node ?? this.#options.node;
    const { isNoticed } = seen;
    // Marks of pods count as they are now, and so does a node that has fallen silent. Under a
    // notice neither does, and a new plan would shift the waves.
    const state = `${marksOf(ownPods, now)} ${isUnreachable(node)} ${isNoticed}`;
    const basis = deadlineAt === undefined ? state : String(deadlineAt);
    if (this.#plan !== undefined && this.#planBasis === basis) return this.#plan;
    const notice =
      deadlineAt === undefined ? undefined : { leftMs: between(now, deadlineAt), knownAt };
    this.#planBasis = basis;
    const waitsSince = startedAt;
    const beganWith = this.#beganWith;
    this.#plan = planDrain({
      ...{ node, pods: ownPods, budgets, rule, notice, now },
      ...{ waitsSince, beganWith, self, isNoticed },
    });
    this.#firstPlan ??= this.#plan;
    return this.#plan;
  }

  #ask(act: DrainAct, dueAt: Instant | undefined): Promise<EvictionAnswer> {
    const { actor } = this.#options;
    const goesOut = () => this.#goesOut(act);
    switch (act.kind) {
      case "Evict":
        return actor.evict(act.pod, { graceSeconds: goesOut, dueAt });
      case "Delete":
        return actor.remove(act.pod, { graceSeconds: goesOut, dueAt, reason: act.reason });
      case "RestartOwner":
        return actor.restartOwner(act.pod, act.owner, { onTurn: goesOut, dueAt });
    }
  }

  /**
   * Records that the act is sent now, and returns the grace period for it. Throws if the drain is
   * over: during a burst, acts are queued behind those of other drains.
   */
  #goesOut(act: DrainAct): number | undefined {
    if (this.#isOver) {
      const { namespace, name } = act.pod;
      throw new LastcallError(
        "INTERRUPTED",
        `Cannot evict ${namespace}/${name}: its drain has ended, expected a drain under way`,
      );
    }
    const [progress, deadlineAt] = [this.#progress, this.#deadlineAt];
    const sent = recordSending({ progress, act, deadlineAt, now: this.#options.now() });
    this.#progress = sent.progress;
    this.#options.onProgress?.();
    return sent.graceSeconds;
  }
}
