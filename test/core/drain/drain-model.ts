import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { BudgetFacts, PodFacts } from "../../../src/core/cluster/pod.ts";
import type { EvictionAnswer } from "../../../src/core/drain/drain-answer.ts";
import {
  type DrainView,
  drainAnswered,
  drainSent,
  drainStep,
  freshDrain,
} from "../../../src/core/drain/drain-memory.ts";
import type { DrainAct } from "../../../src/core/drain/drain-progress.ts";
import type { DrainStep } from "../../../src/core/drain/drain-step.ts";
import {
  type Termination,
  TerminationMemory,
  type TerminationRecords,
} from "../../../src/core/drain/drain-time.ts";
import type { DrainPlan } from "../../../src/core/drain-plan/drain-plan.ts";
import type { DrainRule } from "../../../src/core/policy/policy.ts";
import {
  type Instant,
  instant,
  type Millis,
  millis,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { node, startAt } from "./drain-scene.ts";

/**
 * A node with pods and budgets in virtual time, driven by the drain's transitions alone. It
 * enforces the API's rules itself: what a budget allows, and that a deletion can only be shortened.
 */
export interface DrainRun {
  /** Absent: one that is ready. */
  readonly node?: NodeFacts | undefined;
  readonly pods: readonly ModelPod[];
  readonly budgets?: readonly ModelBudget[] | undefined;
  readonly rule: DrainRule;
  readonly notice?: Millis | undefined;
  /** The cloud takes the machine and does not say when. */
  readonly isTaken?: boolean | undefined;
  /** A notice that arrives during a planned drain. */
  readonly lateNotice?: { readonly afterMs: Millis; readonly leftMs: Millis } | undefined;
  /** The controller dies then; a new one makes a new plan and knows only the live pods. */
  readonly restartAfterMs?: Millis | undefined;
  /** What earlier drains have recorded. */
  readonly remembered?: readonly Termination[] | undefined;
  readonly seed?: number | undefined;
  /** When a drain without an end is no longer followed; absent: after a day. */
  readonly untilMs?: Millis | undefined;
  /** The API's response to an act, overriding the model; undefined: the model decides. */
  readonly api?: ((act: DrainAct, afterMs: number) => EvictionAnswer | undefined) | undefined;
}

export interface ModelPod {
  readonly facts: PodFacts;
  /** How long its processes take after the signal; absent: they ignore it. */
  readonly exitMs?: Millis | undefined;
  /** When it completes without being evicted. */
  readonly completesAfterMs?: Millis | undefined;
}

export interface ModelBudget {
  readonly facts: BudgetFacts;
  /** How long after an eviction a replacement is ready; absent: never. */
  readonly recoversMs?: Millis | undefined;
}

export interface Sent {
  readonly act: DrainAct;
  readonly afterMs: number;
  readonly answer: EvictionAnswer["kind"];
  /** Names of the pods that were on the node. */
  readonly there: readonly string[];
}

export interface DrainRecord {
  readonly plan: DrainPlan;
  readonly sent: readonly Sent[];
  readonly end: DrainStep;
  readonly endedMs: number;
  /** The terminations that the steps reported for later drains. */
  readonly ended: readonly Termination[];
  /** `at name: what` for each event, in seconds. */
  readonly timeline: readonly string[];
}

interface World {
  nowMs: number;
  readonly here: Map<
    string,
    { facts: PodFacts; model: ModelPod; goneAtMs: number; graceMs: number }
  >;
  readonly allowed: Map<string, number>;
  readonly recoveries: { atMs: number; budget: string }[];
  readonly timeline: string[];
  /** What the last counts say, which a new controller reads in the status. */
  waitSeconds: number;
}

const dayMs = 86_400_000;

export function runDrain(run: DrainRun): DrainRecord {
  const world = worldOf(run);
  const rng = seededRng(run.seed ?? 1);
  const sent: Sent[] = [];
  const ended: Termination[] = [];
  let terminations = new TerminationMemory();
  for (const one of run.remembered ?? []) terminations.remember(one);
  let memory = freshDrain;
  let first: DrainPlan | undefined;
  let restarted = false;
  while (true) {
    if (!restarted && run.restartAfterMs !== undefined && world.nowMs >= run.restartAfterMs) {
      restarted = true;
      memory = freshDrain;
      terminations = new TerminationMemory();
    }
    const stepped = drainStep(memory, viewOf(run, { world, known: terminations.records }));
    const { step } = stepped;
    ({ memory } = stepped);
    world.waitSeconds = step.counts.waitSeconds ?? 0;
    first ??= stepped.plan;
    ended.push(...step.ended);
    for (const one of step.ended) terminations.remember(one);
    for (const act of step.acts) {
      const answer = run.api?.(act, world.nowMs) ?? answerOf(act, { run, world });
      const there = live(world).map((pod) => pod.name);
      sent.push({ act, afterMs: world.nowMs, answer: answer.kind, there });
      world.timeline.push(`${stamp(world)} ${act.pod.name}: ${act.kind} ${answer.kind}`);
      const now = nowOf(world);
      const under = drainSent(memory, act, now);
      if (under === "Over") throw new Error("a drain under way refuses its own act");
      memory = drainAnswered(under.memory, act, { answer, now, rng });
    }
    if (step.verdict !== "Running" || world.nowMs > (run.untilMs ?? dayMs)) {
      world.timeline.push(`${stamp(world)} ${step.verdict}`);
      const { nowMs: endedMs, timeline } = world;
      return { plan: first, sent, end: step, endedMs, ended, timeline };
    }
    if (step.acts.length === 0) advance(world, nextMoment(run, { world, step }));
  }
}

function worldOf(run: DrainRun): World {
  const here = run.pods.map((model): [string, ReturnType<World["here"]["get"]> & object] => [
    model.facts.uid,
    {
      facts: model.facts,
      model,
      goneAtMs: goneAtFirst(model),
      graceMs: model.facts.graceSeconds * 1000,
    },
  ]);
  return {
    nowMs: 0,
    here: new Map(here),
    allowed: new Map((run.budgets ?? []).map((b) => [b.facts.name, b.facts.disruptionsAllowed])),
    recoveries: [],
    timeline: [],
    waitSeconds: 0,
  };
}

/** A pod that terminates already takes what is left of its grace. */
function goneAtFirst({ facts: { deletionAt }, completesAfterMs }: ModelPod): number {
  const endsMs = deletionAt === undefined ? Number.POSITIVE_INFINITY : deletionAt - startAt;
  return Math.min(endsMs, completesAfterMs ?? Number.POSITIVE_INFINITY);
}

function viewOf(
  run: DrainRun,
  { world, known }: { readonly world: World; readonly known: TerminationRecords },
): DrainView {
  const [livePods, deadlineAt] = [live(world), deadlineNow(run, world)];
  return {
    ...{
      node: run.node ?? node(),
      livePods,
      ownPods: livePods,
      rule: run.rule,
      known,
      now: nowOf(world),
    },
    budgets: (run.budgets ?? []).map((one) => one.facts),
    isNoticed: deadlineAt !== undefined || run.isTaken === true,
    ...{ startedAt: startAt, deadlineAt, isTaken: run.isTaken },
    waitedMs: seconds(world.waitSeconds),
    knownAt: plus(startAt, run.lateNotice?.afterMs ?? millis(0)),
  };
}

/** A notice is known from its start, even after a restart of the controller. */
function deadlineNow({ notice, lateNotice }: DrainRun, { nowMs }: World): Instant | undefined {
  if (notice !== undefined) return plus(startAt, notice);
  if (lateNotice === undefined || nowMs < lateNotice.afterMs) return undefined;
  return plus(startAt, millis(lateNotice.afterMs + lateNotice.leftMs));
}

function answerOf(
  act: DrainAct,
  about: { readonly run: DrainRun; readonly world: World },
): EvictionAnswer {
  const { run, world } = about;
  const pod = world.here.get(act.pod.uid);
  if (pod === undefined) return { kind: "Gone" };
  if (act.kind === "RestartOwner") {
    pod.goneAtMs = world.nowMs + 20_000;
    return { kind: "Accepted" };
  }
  if (act.kind === "Evict") {
    const budgets = (run.budgets ?? []).filter((one) => covers(one.facts, pod.facts));
    if (budgets.length > 1) return { kind: "MultipleBudgets", message: "more than one" };
    const [budget] = budgets;
    if (budget !== undefined) {
      const { name } = budget.facts;
      const allowed = world.allowed.get(name) ?? 0;
      if (allowed <= 0) return { kind: "Blocked", budget: name, message: "spent", stale: false };
      world.allowed.set(name, allowed - 1);
      if (budget.recoversMs !== undefined) {
        world.recoveries.push({ atMs: world.nowMs + budget.recoversMs, budget: name });
      }
    }
  }
  const graceMs = 1000 * (act.graceSeconds ?? pod.facts.graceSeconds);
  const deletionAt = instant(startAt + world.nowMs + graceMs);
  pod.facts = { ...pod.facts, deletionAt };
  pod.goneAtMs = world.nowMs + Math.min(graceMs, pod.model.exitMs ?? graceMs);
  return { kind: "Accepted" };
}

function covers(budget: BudgetFacts, pod: PodFacts): boolean {
  const labels = Object.entries(budget.selector.matchLabels ?? {});
  return labels.every(([key, value]) => pod.labels[key] === value);
}

/** The next event: of a pod or a budget, a notice, a restart, or the next check. */
function nextMoment(
  run: DrainRun,
  about: { readonly world: World; readonly step: DrainStep },
): number {
  const { world, step } = about;
  const moments = [
    step.askAgainAt === undefined ? Number.POSITIVE_INFINITY : step.askAgainAt - startAt,
    ...[...world.here.values()].map((pod) => pod.goneAtMs),
    ...world.recoveries.map((recovery) => recovery.atMs),
    run.lateNotice?.afterMs ?? Number.POSITIVE_INFINITY,
    run.restartAfterMs ?? Number.POSITIVE_INFINITY,
  ].filter((atMs) => atMs > world.nowMs);
  return Math.min(dayMs + 1, ...moments);
}

function advance(world: World, toMs: number): void {
  world.nowMs = toMs;
  for (const [uid, pod] of world.here) {
    if (pod.goneAtMs > toMs) continue;
    world.here.delete(uid);
    world.timeline.push(`${stamp(world)} ${pod.facts.name}: gone`);
  }
  for (const recovery of world.recoveries.filter((one) => one.atMs <= toMs)) {
    world.recoveries.splice(world.recoveries.indexOf(recovery), 1);
    world.allowed.set(recovery.budget, (world.allowed.get(recovery.budget) ?? 0) + 1);
  }
}

function live(world: World): readonly PodFacts[] {
  return [...world.here.values()].map((pod) => pod.facts);
}

function nowOf(world: World): Instant {
  return plus(startAt, millis(world.nowMs));
}

function stamp(world: World): string {
  return (world.nowMs / millis(seconds(1))).toString();
}
