import type { Rng } from "../chance/chance.ts";
import type { NodeFacts } from "../cluster/node.ts";
import type { BudgetFacts, PodFacts } from "../cluster/pod.ts";
import { type DrainPlan, isUnreachable, planDrain } from "../drain-plan/drain-plan.ts";
import { marksOf } from "../drain-plan/pod-obstacle.ts";
import type { DrainRule } from "../policy/policy.ts";
import { type Instant, type Millis, millis } from "../time/time.ts";
import { type EvictionAnswer, recordAnswer, recordSending } from "./drain-answer.ts";
import type { DrainAct, DrainProgress } from "./drain-progress.ts";
import { type DrainStep, longestWait, nextDrainActs } from "./drain-step.ts";
import type { TerminationRecords } from "./drain-time.ts";

/**
 * What a drain remembers between two events: plain data that survives JSON. It may be lost at any
 * moment, with the process: `freshDrain` then continues from the pods that are there.
 */
export interface DrainMemory {
  readonly progress: DrainProgress;
  /** The plan that holds, and what it was made for; see `basisOf`. */
  readonly plan?: DrainPlan | undefined;
  readonly basis?: string | undefined;
  /** The plan that the drain started or was resumed with. */
  readonly firstPlan?: DrainPlan | undefined;
  /**
   * Over all plans so far, because the newest one may no longer contain the job that was waited
   * for. The next leader gets it from the counts.
   */
  readonly longestWaitMs: Millis;
  /** The uids of the pods that existed when the drain started. */
  readonly beganWith?: readonly string[] | undefined;
  /** The drain has ended: acts that are still queued are not sent. */
  readonly isOver?: true | undefined;
}

export const freshDrain: DrainMemory = { progress: {}, longestWaitMs: millis(0) };

/** What is known at a step. */
export interface DrainView {
  readonly node: NodeFacts;
  /** Whether the cloud takes the machine, with a deadline or without. */
  readonly isNoticed: boolean;
  /** Whether it takes the machine in any case; see `isTakenEventually`. */
  readonly isTaken?: boolean | undefined;
  readonly livePods: readonly PodFacts[];
  /** Those of them that are known to belong to the node; only these are evicted. */
  readonly ownPods: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly rule: DrainRule;
  readonly startedAt: Instant;
  /** The uids of the pods that existed when the drain started; absent: those of the first step. */
  readonly beganWith?: ReadonlySet<string> | undefined;
  /** The longest wait so far, if the drain was interrupted: `waitSeconds` of its counts. */
  readonly waitedMs?: Millis | undefined;
  /** When the machine may be gone, under a notice. */
  readonly deadlineAt: Instant | undefined;
  /** Since when the drain has known that deadline. */
  readonly knownAt: Instant;
  /** How long pods took to terminate, in this drain and in others. */
  readonly known: TerminationRecords;
  /** The uid of the controller's own pod, if it is on the node. */
  readonly self?: string | undefined;
  readonly now: Instant;
}

interface PlannedDrain extends DrainMemory {
  readonly plan: DrainPlan;
}

interface SteppedDrain {
  readonly memory: DrainMemory;
  readonly step: DrainStep;
  readonly plan: DrainPlan;
}

/**
 * Decides what to do now. Step again when a pod changes, a response arrives or `askAgainAt` is
 * reached; a second step on the same view asks for nothing more.
 */
export function drainStep(memory: DrainMemory, view: DrainView): SteppedDrain {
  const planned = withPlan(begun(memory, view), view);
  const stepped = stepBy(planned, view);
  const own = new Set(view.ownPods.map(({ uid }) => uid));
  const isJoined = stepped.step.unplanned.some(({ uid }) => own.has(uid));
  // A pod has arrived despite the cordon: it is planned like the others.
  return isJoined ? stepBy(replanned(planned, view), view) : stepped;
}

/**
 * An act is sent now, which in a burst can be well after its step, or again with new credentials:
 * the grace period for the request is what the deadline leaves by then (undefined: the pod's own).
 * `Over`: it must not be sent.
 */
export function drainSent(
  memory: DrainMemory,
  act: DrainAct,
  now: Instant,
): { readonly memory: DrainMemory; readonly graceSeconds: number | undefined } | "Over" {
  if (memory.isOver === true) return "Over";
  const deadlineAt = memory.plan?.deadlineAt;
  const { progress, graceSeconds } = recordSending({ ...memory, act, deadlineAt, now });
  return { memory: { ...memory, progress }, graceSeconds };
}

/** The response to an act has arrived, or its loss is known. */
export function drainAnswered(
  memory: DrainMemory,
  act: DrainAct,
  about: { readonly answer: EvictionAnswer; readonly now: Instant; readonly rng: Rng },
): DrainMemory {
  const { progress } = memory;
  const deadlineAt = memory.plan?.deadlineAt;
  return { ...memory, progress: recordAnswer({ progress, act, deadlineAt, ...about }) };
}

function begun(memory: DrainMemory, view: DrainView): DrainMemory {
  if (memory.beganWith !== undefined) return memory;
  const { beganWith, livePods, waitedMs: longestWaitMs = memory.longestWaitMs } = view;
  return {
    ...memory,
    ...{ longestWaitMs, beganWith: [...(beganWith ?? livePods.map(({ uid }) => uid))] },
  };
}

function stepBy(memory: PlannedDrain, view: DrainView): SteppedDrain {
  const { plan, progress, longestWaitMs } = memory;
  const found = nextDrainActs({ ...view, plan, progress, longestWaitMs });
  const waitSeconds = Math.ceil(longestWaitMs / 1000);
  const counts = waitSeconds === 0 ? found.counts : { ...found.counts, waitSeconds };
  const step = { ...found, counts };
  return { memory: { ...memory, progress: step.progress }, step, plan };
}

function withPlan(memory: DrainMemory, view: DrainView): PlannedDrain {
  const { plan, basis } = memory;
  const isValid = plan !== undefined && basis === basisOf(view);
  return isValid ? { ...memory, plan } : replanned(memory, view);
}

function replanned(memory: DrainMemory, view: DrainView): PlannedDrain {
  const { ownPods: pods, startedAt: waitsSince } = view;
  const plan = planDrain({ ...view, pods, waitsSince, beganWith: new Set(memory.beganWith) });
  return {
    ...memory,
    plan,
    basis: basisOf(view),
    firstPlan: memory.firstPlan ?? plan,
    longestWaitMs: millis(Math.max(memory.longestWaitMs, longestWait(plan))),
  };
}

/**
 * What a plan holds for. Marks of pods count as they are now, and so does a node that has fallen
 * silent. Under a notice neither does, and a new plan would shift the waves.
 */
function basisOf({ node, isNoticed, ownPods, deadlineAt, now }: DrainView): string {
  if (deadlineAt !== undefined) return String(deadlineAt);
  return `${marksOf(ownPods, now)} ${isUnreachable(node)} ${isNoticed}`;
}
