import type { FollowedPods } from "../../contracts/node-pods.ts";
import { Wakeup } from "../../contracts/wakeup.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { BudgetFacts, PodIdentity } from "../../core/cluster/pod.ts";
import {
  cloudDeadline,
  type Departure,
  type DrainCounts,
  isNoticed,
} from "../../core/departure/departure.ts";
import {
  drainBeganAt,
  hasReserved,
  type PhaseResult,
  reasonSince,
} from "../../core/departure/ledger.ts";
import { drainAccount } from "../../core/drain/drain-account.ts";
import { type DrainAct, withEarlierOutcomes } from "../../core/drain/drain-progress.ts";
import {
  bindingMs,
  drainDeadline,
  drainRuleOf,
  noticeKnownAt,
  ruleUntil,
  thereBefore,
} from "../../core/drain/drain-rule.ts";
import type { DrainStep } from "../../core/drain/drain-step.ts";
import { explainHeld } from "../../core/drain/explain-held.ts";
import { placeholderName } from "../../core/drain/placeholder-plan.ts";
import type { DrainPlan } from "../../core/drain-plan/drain-plan.ts";
import type { DrainRule } from "../../core/policy/policy.ts";
import { earliest, type Instant, later, type Millis, millis, plus } from "../../core/time/time.ts";
import { DrainDriver } from "../../drain/drain-driver.ts";
import { messageOf } from "../../errors.ts";
import { MachineCheck } from "./machine-check.ts";
import { longestPause } from "./retry.ts";
import { type DrainEnd, type StepContext, targetOf } from "./step.ts";

/**
 * Answers and changes of pods come in bursts, and a step looks at every pod: so long after the
 * first of a burst the others are waited for. Of a drain of 110 pods this halves the time.
 */
const gatherMs: Millis = millis(20);

/** How long a drain under a notice waits for the budgets. */
const budgetsWaitMs: Millis = millis(500);

/**
 * The pods leave. What the drain came to is in the memory of the run; one that is undone ends here.
 */
export async function drain(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { telemetry, runningDrains, memory } = context;
  const departure = context.departure();
  const run = new NodeDrain(context);
  memory.countAgain = () => run.countAgain();
  const stop = context.onObserved(() => run.wake());
  try {
    const end = await run.run(signal);
    if ("event" in end) return end;
    telemetry.drainEnded(context.departure(), end);
    runningDrains.leave(departure);
    memory.drained = end;
    const isUndone = end.verdict === "TimedOut" && end.rule.onTimeout !== "Proceed";
    if (!isUndone) return undefined;
    return { event: "GaveUp", reason: "DrainTimeout", detail: end.detail };
  } finally {
    stop();
  }
}

/**
 * Whether pods that left before a drain was taken up may have had volumes of their own. A look at
 * them lists all of the cluster, so that in a burst of notices one is not worth it without a sign.
 */
function mayHaveHadVolumes(departure: Departure, counted: DrainCounts | undefined): boolean {
  const hasWaited = reasonSince(departure.status, "VolumeWait") !== undefined;
  return hasWaited || (counted !== undefined && !isNoticed(departure));
}

interface Begun {
  readonly followed: FollowedPods;
  readonly machine: MachineCheck;
  readonly budgets: readonly BudgetFacts[];
  readonly startedAt: Instant;
}

/**
 * One node's drain: follows its pods, asks core what to do now, does it, and looks again when a
 * pod changes, an answer comes or the next instant is reached. Nothing is held while it waits, and
 * a drain begun again after a restart goes on from the pods as they are.
 */
class NodeDrain {
  readonly #context: StepContext;
  readonly #node: NodeFacts;
  readonly #driver: DrainDriver;
  readonly #wakeup: Wakeup;
  /** The policy's rule as it is for this departure, when the drain began. */
  readonly #rule: DrainRule;
  /** What was counted before this drain, by one that it goes on with. */
  readonly #countedBefore: DrainCounts | undefined;
  #reportAgainAt: Instant | undefined;
  #heldBy: string | undefined;
  #volumes: DrainEnd["volumes"];
  #begun: Begun | undefined;
  /** When this drain began or was taken up; by the monotonic clock. */
  readonly #startedAtMs: number;
  /** Since when nothing is left to do, if that is so. */
  #doneAt: Instant | undefined;

  constructor(context: StepContext) {
    const { executor, clock, rng, self, terminations, policy } = context;
    const departure = context.departure();
    this.#context = context;
    this.#startedAtMs = clock.monotonic();
    this.#node = targetOf(context);
    this.#rule = drainRuleOf(departure, { rule: policy.drain, now: clock.now() });
    this.#countedBefore = context.memory.counts ?? departure.status.drain;
    this.#volumes = mayHaveHadVolumes(departure, this.#countedBefore) ? "Some" : "None";
    this.#wakeup = new Wakeup(clock);
    this.#driver = new DrainDriver({
      ...{ node: this.#node, actor: executor, rng, self, terminations },
      now: () => clock.now(),
      onProgress: () => this.wake(),
    });
  }

  /** A notice may have come, or its deadline have moved: the next step counts with it. */
  wake(): void {
    this.#wakeup.wake();
  }

  async run(signal: AbortSignal): Promise<DrainEnd | PhaseResult> {
    const { pods, clock, memory } = this.#context;
    const departure = this.#departure;
    // The watch ends with the drain, not with whatever called it.
    const done = new AbortController();
    const followed = pods.follow(this.#node.name, {
      dueAt: this.#dueAt(),
      longestPauseMs: longestPause(departure),
      signal: AbortSignal.any([signal, done.signal]),
    });
    const stop = followed.onChange(() => this.wake());
    const machine = new MachineCheck({
      ...{ departure, node: this.#node, tools: this.#context },
      onLooked: () => this.wake(),
      signal: done.signal,
    });
    try {
      const [budgets] = await Promise.all([this.#budgets(done.signal), followed.synced()]);
      const startedAt = this.#beganAt ?? clock.now();
      machine.trust(followed.pods());
      const isTakenUp = this.#countedBefore !== undefined;
      const there = isTakenUp ? thereBefore(followed.pods(), startedAt) : followed.pods();
      memory.beganWith ??= new Set(there.map(({ uid }) => uid));
      this.#begun = { followed, machine, budgets, startedAt };
      return await this.#untilOver(this.#begun, signal);
    } finally {
      this.#driver.end();
      stop();
      done.abort();
    }
  }

  /**
   * Once the node is gone: the watch that tells of its pods may lag behind the one that tells of
   * it, and whoever left in time has not gone with the machine.
   */
  async countAgain(): Promise<void> {
    const { pods, memory } = this.#context;
    if (this.#begun === undefined || memory.counts?.left === 0) return;
    const there = await pods.list(this.#node.name);
    this.#step({ ...this.#begun, followed: { ...this.#begun.followed, pods: () => there } });
  }

  async #untilOver(begun: Begun, signal: AbortSignal): Promise<DrainEnd | PhaseResult> {
    const { clock } = this.#context;
    for (;;) {
      signal.throwIfAborted();
      if (begun.machine.lost !== undefined) return begun.machine.lost;
      const step = this.#step(begun);
      const { verdict, counts } = step;
      this.#doneAt = verdict === "Done" ? (this.#doneAt ?? clock.now()) : undefined;
      const bindsMs = this.#bindsFor();
      if (verdict === "Done" && bindsMs > 0) {
        await this.#wakeup.sleepUntil(plus(clock.now(), bindsMs), signal);
        continue;
      }
      if (verdict !== "Running") return this.#end({ verdict, counts }, begun);
      this.#heldBy = explainHeld(step.blocked);
      for (const act of step.acts) void this.#carryOut(act, signal);
      const wakeAt = earliest(step.askAgainAt, this.#reportAgainAt);
      const woken = await this.#wakeup.sleepUntil(wakeAt, signal);
      if (woken === "Woken") await clock.sleep(gatherMs, signal);
    }
  }

  /**
   * For how long a scheduler that does not know of the cordon yet may still bind pods to the node.
   * They have to leave as well before the node counts as drained, since that completes a lifecycle
   * hook. A controller that takes a drain up may have done so right after the cordon.
   */
  #bindsFor(): Millis {
    const { memory, clock } = this.#context;
    const { cordonedAtMs = this.#startedAtMs } = memory;
    return millis(Math.max(0, cordonedAtMs + bindingMs - clock.monotonic()));
  }

  /**
   * Budgets are a forecast: the eviction API asks them itself. Under a notice a drain goes without
   * them where they cannot be read at once.
   */
  async #budgets(signal: AbortSignal): Promise<readonly BudgetFacts[]> {
    const { pods, clock, executor } = this.#context;
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

  #step({ followed, machine, budgets, startedAt }: Begun): DrainStep {
    const departure = this.#departure;
    const livePods = followed.pods();
    const ownPods = machine.ownOf(livePods);
    if (ownPods.some((pod) => pod.volumeClaims.length > 0)) this.#volumes = "Some";
    const since = { beganAt: startedAt, noticedAt: departure.noticedAt };
    const namedAt = cloudDeadline(departure);
    const deadlineAt = drainDeadline(namedAt, since);
    // A notice may have come in mid-drain.
    const asked = drainRuleOf(departure, { rule: this.#rule, now: startedAt });
    const rule = ruleUntil(deadlineAt, { rule: asked, namedAt });
    const knownAt = noticeKnownAt(since);
    const { beganWith } = this.#context.memory;
    const view = { livePods, ownPods, budgets, rule, startedAt, beganWith, deadlineAt, knownAt };
    const { step: found, plan } = this.#driver.step(view);
    const counts = withEarlierOutcomes(found.counts, this.#countedBefore);
    const step = { ...found, counts };
    this.#reportAgainAt = this.#report(step, plan);
    return step;
  }

  /** The status writer writes what is new of it at its own pace, and says when to come again. */
  #report(step: DrainStep, plan: DrainPlan): Instant | undefined {
    const { statusWriter, runningDrains, telemetry, memory } = this.#context;
    const departure = this.#departure;
    statusWriter.recordDemands(runningDrains.enter(departure, plan));
    telemetry.drainStepped(departure, step, plan);
    memory.counts = step.counts;
    return statusWriter.recordProgress(departure, step);
  }

  async #carryOut(act: DrainAct, signal: AbortSignal): Promise<void> {
    const answer = await this.#driver.carryOut(act, { dueAt: this.#dueAt(), signal });
    if (answer?.kind === "Accepted") this.#giveCapacity(act.pod);
  }

  /**
   * The pod's replacement needs the room now. Not before: a pod that its budget holds keeps its
   * room, and in the moment between the replacement outranks the placeholder.
   */
  #giveCapacity(pod: PodIdentity): void {
    const { executor, telemetry } = this.#context;
    const departure = this.#departure;
    if (!hasReserved(departure.status)) return;
    executor
      .removePlaceholder(placeholderName(pod.uid))
      .catch((error: unknown) => telemetry.faulted("room-not-given", departure, error));
  }

  #end(
    { verdict, counts }: { readonly verdict: DrainEnd["verdict"]; readonly counts: DrainCounts },
    { followed, startedAt }: Begun,
  ): DrainEnd {
    const { firstPlan: plan } = this.#driver;
    const endedAt = this.#doneAt ?? this.#context.clock.now();
    return {
      verdict,
      endedAt,
      rule: this.#rule,
      detail: this.#heldBy,
      account: plan && drainAccount({ plan, startedAt, endedAt, counts }),
      volumes: this.#volumes,
      staying: followed.pods(),
    };
  }

  /** The nearest deadline goes first; a drain under no notice has its own timeout. */
  #dueAt(): Instant {
    const departure = this.#departure;
    const beganAt = this.#beganAt ?? this.#context.clock.now();
    return cloudDeadline(departure) ?? plus(beganAt, this.#rule.timeoutMs);
  }

  /** When this drain began, be it with a controller before us; undefined: it begins now. */
  get #beganAt(): Instant | undefined {
    const { lateSinceAt } = this.#context.memory;
    const beganAt = drainBeganAt(this.#departure.status);
    return beganAt && lateSinceAt ? later(beganAt, lateSinceAt) : (beganAt ?? lateSinceAt);
  }

  get #departure(): Departure {
    return this.#context.departure();
  }
}
