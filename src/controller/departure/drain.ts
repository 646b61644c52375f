import { Wakeup } from "../../contracts/clock.ts";
import type { FollowedPods } from "../../contracts/cluster.ts";
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
import { activeTime, answeredAt, beatOf, type DrainClock } from "../../core/drain/drain-clock.ts";
import { type DrainAct, withEarlierOutcomes } from "../../core/drain/drain-progress.ts";
import { type DrainStep, explainHeld } from "../../core/drain/drain-step.ts";
import {
  bindingMs,
  drainAccount,
  drainDeadline,
  drainRuleOf,
  noticeKnownAt,
  ruleUntil,
  thereBefore,
} from "../../core/drain/drain-time.ts";
import { placeholderName } from "../../core/drain/placeholder-plan.ts";
import type { DrainPlan } from "../../core/drain-plan/drain-plan.ts";
import type { DrainRule } from "../../core/policy/policy.ts";
import {
  earliest,
  type Instant,
  later,
  type Millis,
  millis,
  minus,
  plus,
  seconds,
} from "../../core/time/time.ts";
import { DrainDriver } from "../../drain/drain-driver.ts";
import { listBudgets } from "./budget-list.ts";
import { drainActor } from "./drain-actor.ts";
import { MachineCheck } from "./machine-check.ts";
import { untilListed } from "./pod-list-wait.ts";
import { type DrainEnd, longestPause, type StepContext, targetOf } from "./step.ts";

/**
 * Pod changes and eviction responses arrive in bursts, and each step evaluates every pod: a step
 * waits this long for more of them. For a drain of 110 pods this halves the time.
 */
const batchMs: Millis = millis(20);

/** A beat whose write failed is tried again after this. */
const leastBeatMs: Millis = seconds(1);

/**
 * Drains the node and stores the result in the run's memory. Ends the phase only if the drain has
 * to be rolled back.
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
    const isRolledBack = end.verdict === "TimedOut" && end.rule.onTimeout !== "Proceed";
    if (!isRolledBack) return undefined;
    return { event: "GaveUp", reason: "DrainTimeout", detail: end.detail };
  } finally {
    stop();
  }
}

/**
 * Whether pods that left before a drain was resumed may have had persistent volumes. Looking up
 * attachments lists those of the whole cluster, which a burst of notices cannot afford without a
 * reason.
 */
function mayHaveHadVolumes(departure: Departure, counted: DrainCounts | undefined): boolean {
  const hasWaited = reasonSince(departure.status, "VolumeWait") !== undefined;
  return hasWaited || (counted !== undefined && !isNoticed(departure));
}

interface StartedDrain {
  readonly followed: FollowedPods;
  readonly machine: MachineCheck;
  readonly budgets: readonly BudgetFacts[];
  readonly startedAt: Instant;
}

/**
 * Drains one node: watches its pods, lets core decide the next acts, performs them, and repeats
 * when a pod changes, a response arrives or the next instant is reached. It occupies no worker
 * while it waits. After a restart a drain continues from the pods that are there.
 */
class NodeDrain {
  readonly #context: StepContext;
  readonly #node: NodeFacts;
  readonly #driver: DrainDriver;
  readonly #wakeup: Wakeup;
  /** The policy's drain rule for this departure, as of the start of the drain. */
  readonly #rule: DrainRule;
  /** The counters of the interrupted drain that this one resumes. */
  readonly #countedBefore: DrainCounts | undefined;
  #reportAgainAt: Instant | undefined;
  #heldBy: string | undefined;
  #volumes: DrainEnd["volumes"];
  #started: StartedDrain | undefined;
  /** When this drain started or was resumed (monotonic). */
  readonly #startedAtMs: number;
  /** Since when nothing is left to do. */
  #doneAt: Instant | undefined;
  #active: DrainClock;

  constructor(context: StepContext) {
    const { clock, rng, terminations, policy } = context;
    const departure = context.departure();
    this.#context = context;
    this.#startedAtMs = clock.monotonic();
    this.#node = targetOf(context);
    this.#rule = drainRuleOf(departure, { rule: policy.drain, now: clock.now() });
    this.#countedBefore = context.memory.counts ?? departure.status.drain;
    this.#active = { activeMs: this.#secondsBefore("activeSeconds"), seenMs: this.#startedAtMs };
    this.#volumes = mayHaveHadVolumes(departure, this.#countedBefore) ? "Some" : "None";
    this.#wakeup = new Wakeup(clock);
    this.#driver = new DrainDriver({
      ...{ actor: drainActor(context), rng, terminations },
      now: () => clock.now(),
      onProgress: () => this.wake(),
    });
  }

  /** Triggers the next step, which considers a new notice or deadline. */
  wake(): void {
    this.#wakeup.wake();
  }

  async run(signal: AbortSignal): Promise<DrainEnd | PhaseResult> {
    const { pods, clock, memory } = this.#context;
    const departure = this.#departure;
    // The watch ends with the drain, not with the caller's signal.
    const done = new AbortController();
    const followed = pods.follow(this.#node.name, {
      dueAt: this.#dueAt(),
      longestPauseMs: longestPause(departure),
      signal: AbortSignal.any([signal, done.signal]),
    });
    const stop = followed.onChange(() => {
      this.#answered();
      this.wake();
    });
    const machine = new MachineCheck({
      ...{ departure, node: this.#node, tools: this.#context },
      onLooked: () => this.wake(),
      signal: done.signal,
    });
    try {
      const [budgets] = await Promise.all([
        listBudgets(this.#context, done.signal),
        untilListed(followed, {
          clock,
          limitMs: () => (isNoticed(this.#departure) ? undefined : this.#rule.timeoutMs),
          signal: done.signal,
        }),
      ]);
      this.#active = { ...this.#active, seenMs: clock.monotonic() };
      const startedAt = this.#beganAt ?? clock.now();
      machine.trust(followed.pods());
      const isResumed = this.#countedBefore !== undefined;
      const there = isResumed ? thereBefore(followed.pods(), startedAt) : followed.pods();
      memory.beganWith ??= new Set(there.map(({ uid }) => uid));
      this.#started = { followed, machine, budgets, startedAt };
      return await this.#untilOver(this.#started, signal);
    } finally {
      this.#driver.end();
      stop();
      done.abort();
    }
  }

  /**
   * Recounts the pods once the node is gone: the pod watch may lag behind the node watch, and pods
   * that left in time must not count as lost with the machine.
   */
  async countAgain(): Promise<void> {
    const { pods, memory } = this.#context;
    if (this.#started === undefined || memory.counts?.left === 0) return;
    const there = await pods.list(this.#node.name);
    const followed = { ...this.#started.followed, pods: () => there };
    this.#step({ ...this.#started, followed });
  }

  async #untilOver(started: StartedDrain, signal: AbortSignal): Promise<DrainEnd | PhaseResult> {
    const { clock } = this.#context;
    for (;;) {
      signal.throwIfAborted();
      if (started.machine.lost !== undefined) return started.machine.lost;
      const step = this.#step(started);
      const { verdict, counts } = step;
      this.#doneAt = verdict === "Done" ? (this.#doneAt ?? clock.now()) : undefined;
      const bindsMs = this.#bindingLeftMs();
      if (verdict === "Done" && bindsMs > 0) {
        await this.#wakeup.sleepUntil(plus(clock.now(), bindsMs), signal);
        continue;
      }
      this.#heldBy = explainHeld(step.blocked);
      if (verdict !== "Running") return this.#end({ verdict, counts }, started);
      for (const act of step.acts) void this.#carryOut(act, signal);
      const wakeAt = earliest(step.askAgainAt, this.#reportAgainAt);
      const woken = await this.#wakeup.sleepUntil(wakeAt, signal);
      if (woken === "Woken") await clock.sleep(batchMs, signal);
    }
  }

  /**
   * How much longer a scheduler that has not seen the cordon may still bind pods to the node. Those
   * pods have to leave as well before the node counts as drained, because that completes a
   * lifecycle hook. A resumed drain may have been cordoned just before.
   */
  #bindingLeftMs(): Millis {
    const { memory, clock } = this.#context;
    const { cordonedAtMs = this.#startedAtMs } = memory;
    return millis(Math.max(0, cordonedAtMs + bindingMs - clock.monotonic()));
  }

  #step({ followed, machine, budgets, startedAt }: StartedDrain): DrainStep {
    const departure = this.#departure;
    const livePods = followed.pods();
    const ownPods = machine.ownOf(livePods);
    if (ownPods.some((pod) => pod.volumeClaims.length > 0)) this.#volumes = "Some";
    const since = { beganAt: startedAt, noticedAt: departure.noticedAt };
    const namedAt = cloudDeadline(departure);
    const deadlineAt = drainDeadline(namedAt, since);
    // A notice may have arrived during the drain.
    const asked = drainRuleOf(departure, { rule: this.#rule, now: startedAt });
    const rule = ruleUntil(deadlineAt, { rule: asked, namedAt });
    const knownAt = noticeKnownAt(since);
    const { memory, self } = this.#context;
    // Without a deadline of the cloud, only the time in which the drain could act counts.
    const activeMs = this.#activeMs();
    const timedFromAt = minus(this.#context.clock.now(), activeMs);
    const view = {
      ...{ livePods, ownPods, budgets, rule, deadlineAt, knownAt, self },
      ...{ node: this.#nodeNow, isNoticed: isNoticed(departure), beganWith: memory.beganWith },
      waitedMs: this.#secondsBefore("waitSeconds"),
      startedAt: deadlineAt === undefined ? timedFromAt : startedAt,
    };
    const { step: found, plan } = this.#driver.step(view);
    const beatMs = this.#beatMs();
    const isTimed = deadlineAt === undefined && rule.onTimeout !== "Wait";
    // No drain lasts by its timeout beyond this: only by the grace that its pods still have.
    const timedMs = 2 * (rule.timeoutMs + this.#driver.memory.longestWaitMs);
    const beats = Math.floor(Math.min(activeMs, timedMs) / beatMs);
    const counted = withEarlierOutcomes(found.counts, this.#countedBefore);
    const activeSeconds = isTimed && beats > 0 ? Math.floor((beats * beatMs) / 1000) : undefined;
    const step = { ...found, counts: { ...counted, activeSeconds } };
    const reportAt = this.#report(step, plan);
    const beatAt = millis(Math.max((beats + 1) * beatMs - activeMs, leastBeatMs));
    this.#reportAgainAt =
      isTimed && activeMs < timedMs
        ? earliest(reportAt, plus(this.#context.clock.now(), beatAt))
        : reportAt;
    return step;
  }

  /** The times of an interrupted drain, which a drain of late pods does not share. */
  #secondsBefore(which: "activeSeconds" | "waitSeconds"): Millis {
    const isLate = this.#context.memory.lateSinceAt !== undefined;
    return isLate ? millis(0) : seconds(this.#countedBefore?.[which] ?? 0);
  }

  #activeMs(): Millis {
    const now = { ms: this.#context.clock.monotonic(), beatMs: this.#beatMs() };
    return activeTime(this.#active, now);
  }

  #answered(): void {
    const now = { ms: this.#context.clock.monotonic(), beatMs: this.#beatMs() };
    this.#active = answeredAt(this.#active, now);
  }

  #beatMs(): Millis {
    return beatOf(this.#rule.timeoutMs);
  }

  /** Records the step. Returns when to report again, since the status writer is rate-limited. */
  #report(step: DrainStep, plan: DrainPlan): Instant | undefined {
    const { statusWriter, runningDrains, telemetry, memory } = this.#context;
    const departure = this.#departure;
    statusWriter.recordDemands(runningDrains.enter(departure, plan));
    telemetry.drainStepped(departure, step, plan);
    memory.counts = step.counts;
    return statusWriter.recordProgress(departure, step, () => this.#answered());
  }

  async #carryOut(act: DrainAct, signal: AbortSignal): Promise<void> {
    const answer = await this.#driver.carryOut(act, { dueAt: this.#dueAt(), signal });
    if (answer !== undefined && answer.kind !== "NoAnswer") this.#answered();
    if (answer?.kind === "Accepted") this.#freeCapacityFor(act.pod);
  }

  /**
   * Removes the placeholder of an evicted pod, whose replacement needs the capacity now. Not
   * earlier: a pod that its budget protects keeps its reservation, and the replacement preempts a
   * placeholder that is still there.
   */
  #freeCapacityFor(pod: PodIdentity): void {
    const { placeholders, telemetry } = this.#context;
    const departure = this.#departure;
    if (!hasReserved(departure.status)) return;
    placeholders
      .remove(placeholderName(pod.uid))
      .catch((error: unknown) => telemetry.faulted("room-not-given", departure, error));
  }

  #end(
    { verdict, counts }: { readonly verdict: DrainEnd["verdict"]; readonly counts: DrainCounts },
    { followed, startedAt }: StartedDrain,
  ): DrainEnd {
    const { firstPlan: plan } = this.#driver.memory;
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

  /** The deadline that orders requests in a burst: the notice's, otherwise the drain's timeout. */
  #dueAt(): Instant {
    const departure = this.#departure;
    const beganAt = this.#beganAt ?? this.#context.clock.now();
    return cloudDeadline(departure) ?? plus(beganAt, this.#rule.timeoutMs);
  }

  /** When this drain started, possibly under an earlier leader; undefined if it starts now. */
  get #beganAt(): Instant | undefined {
    const { lateSinceAt } = this.#context.memory;
    const beganAt = drainBeganAt(this.#departure.status);
    return beganAt && lateSinceAt ? later(beganAt, lateSinceAt) : (beganAt ?? lateSinceAt);
  }

  /** The node as last seen; as when the drain began, if it is another one by now. */
  get #nodeNow(): NodeFacts {
    const seen = this.#context.node();
    return seen?.uid === this.#node.uid ? seen : this.#node;
  }

  get #departure(): Departure {
    return this.#context.departure();
  }
}
