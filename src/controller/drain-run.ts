import type { Clock } from "../contracts/clock.ts";
import type { FollowedPods, NodePods } from "../contracts/node-pods.ts";
import { Wakeup } from "../contracts/wakeup.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { BudgetFacts, PodFacts, PodIdentity } from "../core/cluster/pod.ts";
import { cloudDeadline, type Departure, type DrainCounts } from "../core/departure/departure.ts";
import { drainBeganAt, type PhaseChange } from "../core/departure/ledger.ts";
import { drainAccount } from "../core/drain/drain-account.ts";
import { recordAnswer, recordSending } from "../core/drain/drain-answer.ts";
import {
  type DrainAct,
  type DrainProgress,
  withEarlierOutcomes,
} from "../core/drain/drain-progress.ts";
import { drainRuleOf } from "../core/drain/drain-rule.ts";
import { type DrainStep, nextDrainActs } from "../core/drain/drain-step.ts";
import type { EvictionAnswer } from "../core/drain/eviction-answer.ts";
import type { TerminationMemory } from "../core/drain/termination-time.ts";
import { marksOf } from "../core/drain-plan/disturbance-mark.ts";
import { type DrainPlan, planDrain } from "../core/drain-plan/drain-plan.ts";
import { drainDeadline, noticeKnownAt, ruleUntil } from "../core/plan/spacing/clearing.ts";
import type { DrainRule, Policy } from "../core/policy/policy.ts";
import { between, earliest, type Instant, type Millis, millis, plus } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";
import { longestPause } from "./backoff.ts";
import type { Executor } from "./executor.ts";
import { MachineCheck } from "./machine-check.ts";

export interface DrainTools {
  readonly executor: Executor;
  readonly pods: NodePods;
  readonly clock: Clock;
  readonly rng: Rng;
  /** The uid of the pod that runs this controller, where it is one. */
  readonly self?: string | undefined;
  /** What pods took to end, over all drains. */
  readonly terminations: TerminationMemory;
  /** A fresh look at one node, past the watch. */
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
  /**
   * Told after each step; the ledger writes what is new of it at its own pace, and says when it
   * wants to be told again.
   */
  readonly onStep: (step: DrainStep, plan: DrainPlan) => Instant | undefined;
  /** Told when the API has let a pod go, or its owner makes a new one: now that one needs room. */
  readonly onAccepted: (pod: PodIdentity) => void;
}

export interface DrainOrder {
  readonly node: NodeFacts;
  readonly departure: Departure;
  readonly policy: Policy;
}

export type DrainEnd = DrainOver | DrainLost;

/** The machine is not the one that was to leave any more, or its departure is over. */
export interface DrainLost {
  readonly verdict: "Lost";
  readonly work: Omit<PhaseChange, "at">;
}

export interface DrainOver {
  readonly verdict: Exclude<DrainStep["verdict"], "Running">;
  readonly counts: DrainCounts;
  /** The first that held it up, for the ledger. */
  readonly detail?: string | undefined;
  /** What came of it beside what its first plan said. */
  readonly account?: string | undefined;
  /** Whether any pod that was on the node had a volume of its own. */
  readonly volumes: "Some" | "None";
  /** The pods that are still there: those that a drain leaves alone. */
  readonly staying: readonly PodFacts[];
}

/**
 * Answers and changes of pods come in bursts, and a step looks at every pod: so long after the
 * first of a burst the others are waited for. Of a drain of 110 pods this halves the time.
 */
const gatherMs: Millis = millis(20);

/** How long a drain under a notice waits for the budgets. */
const budgetsWaitMs: Millis = millis(500);

/**
 * One node's drain: follows its pods, asks core what to do now, does it, and looks again when a
 * pod changes, an answer comes or the next instant is reached. Nothing is held while it waits, and
 * a drain begun again after a restart goes on from the pods as they are.
 */
export class DrainRun {
  readonly #tools: DrainTools;
  readonly #order: DrainOrder;
  readonly #wakeup: Wakeup;
  #departure: Departure;
  #progress: DrainProgress = {};
  #plan: DrainPlan | undefined;
  #firstPlan: DrainPlan | undefined;
  /** The notice's deadline, or else what the pods were marked with, when the plan was made. */
  #planBasis: Instant | string | undefined;
  #deadlineAt: Instant | undefined;
  #tellAgainAt: Instant | undefined;
  #isOver = false;
  #held: string | undefined;
  #volumes: DrainOver["volumes"] = "None";

  constructor(order: DrainOrder, tools: DrainTools) {
    this.#order = order;
    this.#departure = order.departure;
    this.#tools = tools;
    this.#wakeup = new Wakeup(tools.clock);
  }

  /** A notice has come, or its deadline has moved: the next step counts with it. */
  update(departure: Departure): void {
    this.#departure = departure;
    this.#wakeup.wake();
  }

  async run(signal: AbortSignal): Promise<DrainEnd> {
    const { pods, clock } = this.#tools;
    // The watch ends with the drain, not with whatever called it.
    const done = new AbortController();
    const followed = pods.follow(this.#order.node.name, {
      dueAt: this.#dueAt(),
      longestPauseMs: longestPause(this.#departure),
      signal: AbortSignal.any([signal, done.signal]),
    });
    const stop = followed.onChange(() => this.#wakeup.wake());
    const machine = new MachineCheck({
      departure: this.#departure,
      node: this.#order.node,
      tools: this.#tools,
      onLooked: () => this.#wakeup.wake(),
      signal: done.signal,
    });
    try {
      const [budgets] = await Promise.all([this.#budgets(done.signal), followed.synced()]);
      const startedAt = drainBeganAt(this.#departure.status) ?? clock.now();
      machine.trust(followed.pods());
      for (;;) {
        signal.throwIfAborted();
        if (machine.lost !== undefined) return { verdict: "Lost", work: machine.lost };
        const step = this.#step({ followed, machine, budgets, startedAt });
        const { verdict, counts } = step;
        if (verdict !== "Running")
          return this.#endWith({ verdict, counts }, { followed, startedAt });
        this.#held = step.blocked[0]?.message;
        for (const act of step.acts) void this.#carryOut(act, signal);
        const woken = await this.#wakeup.sleepUntil(
          earliest(step.askAgainAt, this.#tellAgainAt),
          signal,
        );
        if (woken === "Woken") await clock.sleep(gatherMs, signal);
      }
    } finally {
      this.#isOver = true;
      stop();
      done.abort();
    }
  }

  /**
   * Budgets are a forecast: the eviction API asks them itself. Under a notice a drain goes without them
   * where they cannot be read at once.
   */
  async #budgets(signal: AbortSignal): Promise<readonly BudgetFacts[]> {
    const { pods, clock, executor } = this.#tools;
    if (cloudDeadline(this.#departure) === undefined) return pods.budgets();
    const without = (error: string): readonly BudgetFacts[] => {
      const { name: departure } = this.#departure;
      if (!signal.aborted) executor.telemetry.log.warn("budgets-not-read", { departure, error });
      return [];
    };
    const answered = new AbortController();
    const asked = pods.budgets().catch((error: unknown) => without(messageOf(error)));
    const late = clock
      .sleep(budgetsWaitMs, AbortSignal.any([signal, answered.signal]))
      .then(() => without(`no answer came within ${budgetsWaitMs} ms`));
    late.catch(() => undefined);
    try {
      return await Promise.race([asked, late]);
    } finally {
      answered.abort();
    }
  }

  #endWith(
    { verdict, counts }: Pick<DrainOver, "verdict" | "counts">,
    about: { readonly followed: FollowedPods; readonly startedAt: Instant },
  ): DrainOver {
    const plan = this.#firstPlan;
    const { startedAt, followed } = about;
    const endedAt = this.#tools.clock.now();
    return {
      verdict,
      counts,
      detail: this.#held,
      account: plan && drainAccount({ plan, startedAt, endedAt, counts }),
      volumes: this.#volumes,
      staying: followed.pods(),
    };
  }

  #step(seen: {
    readonly followed: FollowedPods;
    readonly machine: MachineCheck;
    readonly budgets: readonly BudgetFacts[];
    readonly startedAt: Instant;
  }): DrainStep {
    const now = this.#tools.clock.now();
    const livePods = seen.followed.pods();
    const ownPods = seen.machine.ownOf(livePods);
    if (ownPods.some((pod) => pod.volumeClaims.length > 0)) this.#volumes = "Some";
    const { startedAt } = seen;
    const since = { beganAt: startedAt, noticedAt: this.#departure.noticedAt };
    const namedAt = cloudDeadline(this.#departure);
    const deadlineAt = drainDeadline(namedAt, since);
    // A notice may have come in mid-drain.
    const asked = drainRuleOf(this.#departure, { rule: this.#order.policy.drain, now: startedAt });
    const rule = ruleUntil(deadlineAt, { rule: asked, namedAt });
    const { budgets } = seen;
    const knownAt = noticeKnownAt(since);
    const outlook = { pods: ownPods, budgets, now, rule, deadlineAt, knownAt };
    const plan = this.#planFor(outlook);
    const known = this.#tools.terminations.records;
    const common = { startedAt, livePods, rule, known, now };
    let step = nextDrainActs({ ...common, plan, progress: this.#progress });
    const own = new Set(ownPods.map(({ uid }) => uid));
    if (step.unplanned.some(({ uid }) => own.has(uid))) {
      // A pod that came late, past the cordon: it is planned like the others.
      this.#plan = undefined;
      const fresh = this.#planFor(outlook);
      step = nextDrainActs({ ...common, plan: fresh, progress: this.#progress });
    }
    this.#progress = step.progress;
    this.#deadlineAt = step.deadlineAt;
    for (const one of step.ended) this.#tools.terminations.remember(one);
    const { drain } = this.#order.departure.status;
    step = { ...step, counts: withEarlierOutcomes(step.counts, drain) };
    this.#tellAgainAt = this.#tools.onStep(step, this.#plan ?? plan);
    return step;
  }

  #planFor(seen: {
    readonly pods: readonly PodFacts[];
    readonly budgets: readonly BudgetFacts[];
    readonly rule: DrainRule;
    readonly now: Instant;
    readonly deadlineAt: Instant | undefined;
    readonly knownAt: Instant;
  }): DrainPlan {
    const { pods, now, rule, deadlineAt, knownAt } = seen;
    // A mark counts as it is now. Under a notice none does, and a new plan would move the waves.
    const basis = deadlineAt ?? marksOf(pods);
    if (this.#plan !== undefined && this.#planBasis === basis) return this.#plan;
    this.#planBasis = basis;
    this.#plan = planDrain({
      node: this.#order.node,
      pods,
      budgets: seen.budgets,
      rule,
      notice: deadlineAt === undefined ? undefined : { leftMs: between(now, deadlineAt), knownAt },
      now,
      self: this.#tools.self,
    });
    this.#firstPlan ??= this.#plan;
    return this.#plan;
  }

  async #carryOut(act: DrainAct, signal: AbortSignal): Promise<void> {
    const { clock, rng } = this.#tools;
    const answer = await this.#ask(act).catch(
      (error: unknown): EvictionAnswer => ({ kind: "NoAnswer", message: messageOf(error) }),
    );
    if (signal.aborted) return;
    this.#progress = recordAnswer({
      progress: this.#progress,
      act,
      answer,
      deadlineAt: this.#deadlineAt,
      now: clock.now(),
      rng,
    });
    if (answer.kind === "Accepted") this.#tools.onAccepted(act.pod);
    this.#wakeup.wake();
  }

  #ask(act: DrainAct): Promise<EvictionAnswer> {
    const { executor } = this.#tools;
    const goesOut = () => this.#goesOut(act);
    const dueAt = this.#dueAt();
    switch (act.kind) {
      case "Evict":
        return executor.evict(act.pod, { graceSeconds: goesOut, dueAt });
      case "Delete":
        return executor.remove(act.pod, { graceSeconds: goesOut, dueAt, reason: act.reason });
      case "RestartOwner":
        return executor.restartOwner(act.pod, act.owner, { onTurn: goesOut, dueAt });
    }
  }

  /**
   * Takes down that the act goes out now, and gives the grace that it is to name. Throws where the
   * drain is over: in a rush an act waits for its turn behind those of other drains.
   */
  #goesOut(act: DrainAct): number | undefined {
    if (this.#isOver) {
      const { namespace, name } = act.pod;
      throw new LastcallError(
        "INTERRUPTED",
        `Cannot ask ${namespace}/${name} to leave: its drain is over, expected one under way`,
      );
    }
    const { progress, graceSeconds } = recordSending({
      progress: this.#progress,
      act,
      deadlineAt: this.#deadlineAt,
      now: this.#tools.clock.now(),
    });
    this.#progress = progress;
    this.#wakeup.wake();
    return graceSeconds;
  }

  /** The nearest deadline goes first; a drain under no notice has its own timeout. */
  #dueAt(): Instant {
    const { policy, departure } = this.#order;
    const beganAt = drainBeganAt(departure.status) ?? this.#tools.clock.now();
    return cloudDeadline(this.#departure) ?? plus(beganAt, policy.drain.timeoutMs);
  }
}
