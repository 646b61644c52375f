import type { LeaveOptions, NodePods, RestartOptions } from "../contracts/cluster.ts";
import type { Rng } from "../core/chance/chance.ts";
import type { OwnerFacts, PodIdentity } from "../core/cluster/pod.ts";
import type { ForceReason } from "../core/departure/drain-reason.ts";
import type { EvictionAnswer } from "../core/drain/drain-answer.ts";
import {
  type DrainMemory,
  type DrainView,
  drainAnswered,
  drainSent,
  drainStep,
  freshDrain,
} from "../core/drain/drain-memory.ts";
import type { DrainAct } from "../core/drain/drain-progress.ts";
import type { DrainStep } from "../core/drain/drain-step.ts";
import type { TerminationMemory } from "../core/drain/drain-time.ts";
import type { DrainPlan } from "../core/drain-plan/drain-plan.ts";
import type { Instant } from "../core/time/time.ts";
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
  readonly actor: DrainActor;
  /** The clock that deadlines refer to. */
  readonly now: () => Instant;
  readonly rng: Rng;
  /** How long pods took to terminate. */
  readonly terminations: TerminationMemory;
  /** Called when an act was sent or its response arrived, because the next step may differ. */
  readonly onProgress?: (() => void) | undefined;
}

/**
 * Carries out the drain of the agent's node as core decides it (`drain-memory.ts`). Its owner
 * passes it the pods of each list, carries out the acts of each step, and steps again when a
 * response arrives or `askAgainAt` is reached. The controller uses the same transitions.
 */
export class DrainDriver {
  readonly #options: DrainDriverOptions;
  #memory: DrainMemory = freshDrain;

  constructor(options: DrainDriverOptions) {
    this.#options = options;
  }

  get memory(): DrainMemory {
    return this.#memory;
  }

  step(seen: Omit<DrainView, "known" | "now">): {
    readonly step: DrainStep;
    readonly plan: DrainPlan;
  } {
    const { terminations, now } = this.#options;
    const view = { ...seen, known: terminations.records, now: now() };
    const { memory, step, plan } = drainStep(this.#memory, view);
    this.#memory = memory;
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
    this.#memory = drainAnswered(this.#memory, act, { answer, now: now(), rng });
    this.#options.onProgress?.();
    return answer;
  }

  /** Ends the drain: acts that are still queued are not sent. */
  end(): void {
    this.#memory = { ...this.#memory, isOver: true };
  }

  #ask(act: DrainAct, dueAt: Instant | undefined): Promise<EvictionAnswer> {
    const { actor } = this.#options;
    const onTurn = () => this.#send(act);
    switch (act.kind) {
      case "Evict":
        return actor.evict(act.pod, { graceSeconds: onTurn, dueAt });
      case "Delete":
        return actor.remove(act.pod, { graceSeconds: onTurn, dueAt, reason: act.reason });
      case "RestartOwner":
        return actor.restartOwner(act.pod, act.owner, { onTurn, dueAt });
    }
  }

  /**
   * Records that the act is sent now, and returns the grace period for it. Throws if the drain is
   * over: during a burst, acts are queued behind those of other drains.
   */
  #send(act: DrainAct): number | undefined {
    const sent = drainSent(this.#memory, act, this.#options.now());
    if (sent === "Over") {
      const { namespace, name } = act.pod;
      throw new LastcallError(
        "INTERRUPTED",
        `Cannot evict ${namespace}/${name}: its drain has ended, expected a drain under way`,
      );
    }
    this.#memory = sent.memory;
    this.#options.onProgress?.();
    return sent.graceSeconds;
  }
}
