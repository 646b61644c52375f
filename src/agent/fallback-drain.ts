import type { Clock } from "../contracts/clock.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Log, Metrics } from "../contracts/telemetry.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { drainDeadline, ruleUntil } from "../core/drain/drain-rule.ts";
import { TerminationMemory } from "../core/drain/termination-time.ts";
import { defaultPolicy } from "../core/policy/policy.ts";
import { between, type Instant, type Millis, millis, seconds } from "../core/time/time.ts";
import { type DrainActor, DrainDriver } from "../drain/drain-driver.ts";

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
 * The agent may read no policy, so the drain goes by the defaults of one. But where the cloud names
 * no deadline, what is held is asked until the machine is gone: no one else would ask for it.
 */
const policyRule = { ...defaultPolicy.drain, onTimeout: "Wait" } as const;

/**
 * One node's drain where no controller does it: the same driver as in the controller, on the pods
 * as a list shows them every second. It looks at no budget beforehand (a right less); the eviction
 * API's refusal tells of one soon enough.
 */
export class FallbackDrain {
  readonly #nodeName: string;
  readonly #tools: FallbackDrainTools;
  readonly #driver: DrainDriver;
  readonly #startedAt: Instant;
  readonly #now: () => Instant;

  /** `now` is in the cloud's time. */
  constructor(node: NodeFacts, tools: FallbackDrainTools, now: () => Instant) {
    const { rng } = tools;
    const [terminations, actor] = [new TerminationMemory(), actorOf(tools)];
    this.#nodeName = node.name;
    this.#tools = tools;
    this.#driver = new DrainDriver({ node, actor, now, rng, terminations });
    this.#startedAt = now();
    this.#now = now;
  }

  /** Does what is due now; how long to wait before the next step. */
  async step(namedAt: Instant | undefined): Promise<Millis | "Drained" | "Ended"> {
    const { pods, log } = this.#tools;
    const livePods = await pods.list(this.#nodeName);
    const startedAt = this.#startedAt;
    const deadlineAt = drainDeadline(namedAt, { beganAt: startedAt });
    const rule = ruleUntil(deadlineAt, { rule: policyRule, namedAt });
    const { step } = this.#driver.step({
      ...{ livePods, ownPods: livePods, budgets: [] },
      ...{ rule, startedAt, deadlineAt, knownAt: startedAt },
    });
    if (step.verdict !== "Running") {
      const { total, left, evicted, forced, cut } = step.counts;
      const { verdict } = step;
      log.warn("fallback-drained", { verdict, total, left, evicted, forced, cut });
      return left === 0 ? "Drained" : "Ended";
    }
    for (const act of step.acts) void this.#driver.carryOut(act);
    const { askAgainAt } = step;
    const askMs = askAgainAt === undefined ? lookEveryMs : between(this.#now(), askAgainAt);
    return millis(Math.min(lookEveryMs, Math.max(0, askMs)));
  }
}

function actorOf({ pods, metrics }: FallbackDrainTools): DrainActor {
  return {
    async evict(pod, options) {
      const answer = await pods.evict(pod, options);
      metrics.count("lastcall_evictions_total", { result: answer.kind });
      return answer;
    },
    remove(pod, { reason, ...options }) {
      metrics.count("lastcall_pods_forced_total", { reason });
      return pods.remove(pod, options);
    },
    // The default rule never asks for it.
    async restartOwner() {
      return { kind: "Failed", retryable: false, message: "an agent restarts no workload" };
    },
  };
}
