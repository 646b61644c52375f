import type { Clock } from "../contracts/clock.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Departure, DrainCounts } from "../core/departure.ts";
import { type DrainPlan, planDrain } from "../core/drain-plan.ts";
import {
  type DrainAct,
  type DrainStep,
  emptyProgress,
  nextDrainActs,
  recordAnswer,
} from "../core/drain-step.ts";
import type { Policy } from "../core/policy.ts";
import type { Rng } from "../core/rng.ts";
import { between, type Instant } from "../core/time.ts";
import { Alarm } from "./alarm.ts";
import type { Executor } from "./executor.ts";

export interface DrainTools {
  readonly executor: Executor;
  readonly pods: NodePods;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Told after each step; the ledger writes what is new of it at its own pace. */
  readonly onStep: (step: DrainStep, plan: DrainPlan) => void;
}

export interface DrainEnd {
  readonly verdict: Exclude<DrainStep["verdict"], "Running">;
  readonly counts: DrainCounts;
  readonly detail?: string | undefined;
}

/**
 * One node's drain: follows its pods, asks core what to do now, does it, and looks again when a
 * pod changes, an answer comes or the next instant is reached. Nothing is held while it waits, and
 * a drain begun anew after a restart goes on from the pods as they are.
 */
export class DrainRun {
  readonly #tools: DrainTools;
  readonly #alarm: Alarm;
  #departure: Departure;

  constructor(departure: Departure, tools: DrainTools) {
    this.#departure = departure;
    this.#tools = tools;
    this.#alarm = new Alarm(tools.clock);
  }

  /** A notice has come, or its deadline has moved: the next step counts with it. */
  update(departure: Departure): void {
    this.#departure = departure;
    this.#alarm.ring();
  }

  async run(policy: Policy, signal: AbortSignal): Promise<DrainEnd> {
    const { pods, clock } = this.#tools;
    const followed = pods.follow(this.#departure.node.name, signal);
    const budgets = await pods.budgets();
    await followed.synced();
    const startedAt = this.#departure.status.startedAt ?? clock.now();
    const stop = followed.onChange(() => this.#alarm.ring());
    let progress = emptyProgress();
    let plan: DrainPlan | undefined;
    let planFor: Instant | undefined;
    try {
      for (;;) {
        signal.throwIfAborted();
        const now = clock.now();
        const deadlineAt = this.#hardDeadline();
        if (plan === undefined || planFor !== deadlineAt) {
          plan = planDrain({
            node: this.#departure.node.name,
            pods: followed.pods(),
            budgets,
            rule: policy.drain,
            now,
            ...(deadlineAt === undefined ? {} : { notice: { leftMs: between(now, deadlineAt) } }),
          });
          planFor = deadlineAt;
        }
        const step = nextDrainActs({
          plan,
          startedAt,
          livePods: followed.pods(),
          progress,
          deadlineAt,
          rule: policy.drain,
          now,
        });
        progress = step.progress;
        this.#tools.onStep(step, plan);
        if (step.verdict !== "Running") return { verdict: step.verdict, counts: step.counts };
        for (const act of step.acts) {
          void this.#carryOut(act).then((answer) => {
            progress = recordAnswer({
              progress,
              pod: act.pod,
              answer,
              now: clock.now(),
              rng: this.#tools.rng,
            });
            this.#alarm.ring();
          });
        }
        await this.#alarm.wait(step.askAgainAt, signal);
      }
    } finally {
      stop();
    }
  }

  /** Only the cloud's deadline forces pods out; a plan's own deadline never does. */
  #hardDeadline(): Instant | undefined {
    const { cause, noticedAt, deadlineAt } = this.#departure;
    const planned = (cause === "Planned" || cause === "Manual") && noticedAt === undefined;
    return planned ? undefined : deadlineAt;
  }

  #carryOut(act: DrainAct): ReturnType<Executor["evict"]> {
    const { executor } = this.#tools;
    return act.kind === "Evict"
      ? executor.evict(act.pod, act.graceSeconds)
      : executor.remove(act.pod, { graceSeconds: act.graceSeconds, reason: act.reason });
  }
}
