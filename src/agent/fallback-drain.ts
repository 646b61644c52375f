import type { Clock } from "../contracts/clock.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { PodFacts } from "../core/cluster/pod.ts";
import { recordAnswer, recordSending } from "../core/drain/drain-answer.ts";
import type { DrainAct, DrainProgress } from "../core/drain/drain-progress.ts";
import { type DrainStep, nextDrainActs } from "../core/drain/drain-step.ts";
import type { EvictionAnswer } from "../core/drain/eviction-answer.ts";
import { TerminationMemory } from "../core/drain/termination-time.ts";
import { type DrainPlan, planDrain } from "../core/drain-plan/drain-plan.ts";
import { drainDeadline, ruleUntil } from "../core/plan/spacing/clearing.ts";
import type { DrainRule } from "../core/policy/policy.ts";
import { defaultPolicy } from "../core/policy/policy-default.ts";
import { between, type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import { messageOf } from "../errors.ts";

export interface FallbackDrainTools {
  readonly pods: Pick<NodePods, "list" | "evict" | "remove">;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "count">;
}

/** Without a watch: how often the pods are looked at. */
const lookEveryMs: Millis = seconds(1);

/**
 * The agent may read no policy, so the drain goes by the defaults of one. But where the cloud names no
 * deadline, what is held is asked until the machine is gone: no one else would ask for it.
 */
const policyRule = { ...defaultPolicy.drain, onTimeout: "Wait" } as const;

/**
 * One node's drain where no controller does it: the plan and the steps of core, as in the controller,
 * on the pods as a list shows them every second. It looks at no budget beforehand (a right less); the
 * eviction API's refusal tells of one soon enough.
 */
export class FallbackDrain {
  readonly #node: NodeFacts;
  readonly #tools: FallbackDrainTools;
  readonly #startedAt: Instant;
  readonly #terminations = new TerminationMemory();
  #progress: DrainProgress = {};
  #plan: DrainPlan | undefined;
  #deadlineAt: Instant | undefined;
  #planDeadlineAt: Instant | undefined;

  constructor(node: NodeFacts, startedAt: Instant, tools: FallbackDrainTools) {
    this.#node = node;
    this.#startedAt = startedAt;
    this.#tools = tools;
  }

  /** Does what is due at `now`, which is in the cloud's time; how long to wait before the next turn. */
  async turn(when: {
    readonly now: () => Instant;
    readonly deadlineAt: Instant | undefined;
  }): Promise<Millis | "Drained" | "Ended"> {
    const livePods = await this.#tools.pods.list(this.#node.name);
    const now = when.now();
    const deadlineAt = drainDeadline(when.deadlineAt, { beganAt: this.#startedAt });
    const rule = ruleUntil(deadlineAt, { rule: policyRule, namedAt: when.deadlineAt });
    const step = this.#step({ livePods, now, rule, deadlineAt });
    if (step.verdict !== "Running") {
      const { total, left, evicted, forced, cut } = step.counts;
      const { verdict } = step;
      this.#tools.log.warn("fallback-drained", { verdict, total, left, evicted, forced, cut });
      return left === 0 ? "Drained" : "Ended";
    }
    for (const act of step.acts) void this.#carryOut(act, when.now);
    const askMs = step.askAgainAt === undefined ? lookEveryMs : between(now, step.askAgainAt);
    return millis(Math.min(lookEveryMs, Math.max(0, askMs)));
  }

  #step(seen: {
    readonly livePods: readonly PodFacts[];
    readonly now: Instant;
    readonly rule: DrainRule;
    readonly deadlineAt: Instant | undefined;
  }): DrainStep {
    const known = this.#terminations.records;
    const state = { ...seen, startedAt: this.#startedAt, known };
    let step = nextDrainActs({ ...state, plan: this.#planFor(seen), progress: this.#progress });
    if (step.unplanned.length > 0) {
      // A pod that came late, past the cordon: it is planned like the others.
      this.#plan = undefined;
      step = nextDrainActs({ ...state, plan: this.#planFor(seen), progress: this.#progress });
    }
    this.#progress = step.progress;
    for (const one of step.ended) this.#terminations.remember(one);
    this.#deadlineAt = step.deadlineAt;
    return step;
  }

  #planFor(seen: {
    readonly livePods: readonly PodFacts[];
    readonly now: Instant;
    readonly rule: DrainRule;
    readonly deadlineAt: Instant | undefined;
  }): DrainPlan {
    const { livePods, now, rule, deadlineAt } = seen;
    if (this.#plan !== undefined && this.#planDeadlineAt === deadlineAt) return this.#plan;
    this.#planDeadlineAt = deadlineAt;
    this.#plan = planDrain({
      node: this.#node,
      pods: livePods,
      budgets: [],
      rule,
      notice:
        deadlineAt === undefined
          ? undefined
          : { leftMs: between(now, deadlineAt), knownAt: this.#startedAt },
      now,
    });
    return this.#plan;
  }

  async #carryOut(act: DrainAct, now: () => Instant): Promise<void> {
    const answer = await this.#ask(act, now).catch(
      (error: unknown): EvictionAnswer => ({ kind: "NoAnswer", message: messageOf(error) }),
    );
    const { rng } = this.#tools;
    const deadlineAt = this.#deadlineAt;
    const progress = this.#progress;
    this.#progress = recordAnswer({ progress, act, answer, deadlineAt, now: now(), rng });
  }

  async #ask(act: DrainAct, now: () => Instant): Promise<EvictionAnswer> {
    const { pods, metrics } = this.#tools;
    const leave = { graceSeconds: () => this.#goesOut(act, now) };
    switch (act.kind) {
      case "Evict": {
        const answer = await pods.evict(act.pod, leave);
        metrics.count("lastcall_evictions_total", { result: answer.kind });
        return answer;
      }
      case "Delete":
        metrics.count("lastcall_pods_forced_total", { reason: act.reason });
        return pods.remove(act.pod, leave);
      case "RestartOwner":
        // The default rule never asks for it.
        return { kind: "Failed", retryable: false, message: "an agent restarts no workload" };
    }
  }

  /** Takes down that the act goes out now; gives the grace that it is to name. */
  #goesOut(act: DrainAct, now: () => Instant): number | undefined {
    const deadlineAt = this.#deadlineAt;
    const sent = recordSending({ progress: this.#progress, act, deadlineAt, now: now() });
    this.#progress = sent.progress;
    return sent.graceSeconds;
  }
}
