import type { NodeFacts } from "../cluster/node.ts";
import type { BudgetFacts, PodFacts } from "../cluster/pod.ts";
import { cloudDeadline, type DrainCounts, isNoticed } from "../departure/departure.ts";
import { contestable } from "../departure/drain-reason.ts";
import { drainBeganAt, hasReserved, reasonSince } from "../departure/ledger.ts";
import { activeTime, answeredAt, beatOf, beatsOf } from "../drain/drain-clock.ts";
import { type DrainView, drainStep, freshDrain } from "../drain/drain-memory.ts";
import { type DrainAct, withEarlierOutcomes } from "../drain/drain-progress.ts";
import { type DrainStep, explainHeld } from "../drain/drain-step.ts";
import {
  bindingMs,
  drainAccount,
  drainRuleOf,
  drainTermsOf,
  isTakenEventually,
  thereBefore,
} from "../drain/drain-time.ts";
import { placeholderName } from "../drain/placeholder-plan.ts";
import { explain } from "../reason/reason.ts";
import { type Instant, later, type Millis, millis, minus, plus, seconds } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import type { DrainCourse, DrainEnd } from "./memory.ts";
import { inPresentTime } from "./pod-deadline.ts";
import { ownPods, trust } from "./pod-owner.ts";

/** How long a drain under a notice waits for the list of budgets. */
const budgetsTimeoutMs = 500;

/** A beat whose write failed is tried again after this. */
const leastBeatMs = 1000;

/** Makes the pods of the node leave. A drain that was interrupted continues with those there. */
export function emptied(evaluation: Evaluation): StepFinding {
  const { memory } = evaluation;
  if (memory.drained !== undefined) return rollBackOf(memory.drained);
  const listed = evaluation.need("pods");
  const budgets = budgetsFor(evaluation);
  if (listed === undefined || budgets === undefined || memory.target === undefined) return "Wait";
  const pods = inPresentTime(listed, { node: nodeOf(memory.target, evaluation), evaluation });
  if (memory.drain === undefined) begin(pods, evaluation);
  else if (memory.drain.policy !== evaluation.scene.policy.name) followPolicy(evaluation);
  const { pods: own, lost } = ownPods(pods, evaluation);
  if (lost !== undefined) return lost;
  return stepped({ pods, own, budgets }, evaluation);
}

/** The node as last seen. */
function nodeOf(target: NodeFacts, { scene }: Evaluation): NodeFacts {
  return scene.node?.uid === target.uid ? scene.node : target;
}

/**
 * Budgets only serve the forecast, since the eviction API enforces them: a notice does not wait for
 * them for long.
 */
function budgetsFor(evaluation: Evaluation): readonly BudgetFacts[] | undefined {
  const { memory, now } = evaluation;
  const since = memory.drain === undefined ? memory.phase.number : 0;
  const budgets = evaluation.isNoticed
    ? evaluation.hope("budgets", since)
    : evaluation.need("budgets", since);
  if (budgets !== undefined || !evaluation.isNoticed) return budgets;
  const untilMs = memory.phase.ms + budgetsTimeoutMs;
  if (evaluation.faultOf("budgets") !== undefined || now.ms >= untilMs) return [];
  evaluation.lookAtMs(untilMs);
  return undefined;
}

/** When this drain started, possibly under an earlier leader; undefined if it starts now. */
function beganAtOf({ status, memory }: Evaluation): Instant | undefined {
  const beganAt = drainBeganAt(status);
  const { lateSinceAt } = memory;
  return beganAt && lateSinceAt ? later(beganAt, lateSinceAt) : (beganAt ?? lateSinceAt);
}

function begin(pods: readonly PodFacts[], evaluation: Evaluation): void {
  const { status, scene, now, memory } = evaluation;
  const { policy } = scene;
  const countedBefore = memory.counts ?? status.drain;
  const beganAt = beganAtOf(evaluation) ?? now.at;
  const there = countedBefore === undefined ? pods : thereBefore(pods, beganAt);
  const drain: DrainCourse = {
    ...{ memory: freshDrain, beganAt, startedMs: now.ms, countedBefore },
    rule: drainRuleOf(evaluation.departure, { rule: policy.drain, now: now.at }),
    policy: policy.name,
    clock: { activeMs: timeBefore("activeSeconds", countedBefore, evaluation), seenMs: now.ms },
    volumes: mayHaveHadVolumes(countedBefore, evaluation) ? "Some" : "None",
  };
  trust(pods, evaluation);
  evaluation.remember({ drain, beganWith: memory.beganWith ?? there.map(({ uid }) => uid) });
}

/** A notice may begin the drain before the watch shows the node, and with it the policy. */
function followPolicy(evaluation: Evaluation): void {
  const { scene, now } = evaluation;
  const { drain: ofPolicy, name: policy } = scene.policy;
  const course = courseOf(evaluation);
  const rule = drainRuleOf(evaluation.departure, { rule: ofPolicy, now: now.at });
  const memory = { ...course.memory, basis: undefined };
  evaluation.remember({ drain: { ...course, rule, policy, memory } });
}

/** The times of an interrupted drain, which a drain of late pods does not share. */
function timeBefore(
  which: "activeSeconds" | "waitSeconds",
  counted: DrainCounts | undefined,
  { memory }: Evaluation,
): Millis {
  return memory.lateSinceAt === undefined ? seconds(counted?.[which] ?? 0) : millis(0);
}

/**
 * Whether pods that left before a drain was resumed may have had persistent volumes. Looking up
 * attachments lists those of the whole cluster, which a burst of notices cannot afford without a
 * reason.
 */
function mayHaveHadVolumes(
  counted: DrainCounts | undefined,
  { status, scene }: Evaluation,
): boolean {
  const hasWaited = reasonSince(status, "VolumeWait") !== undefined;
  return hasWaited || (counted !== undefined && !isNoticed(scene.departure));
}

interface SeenPods {
  readonly pods: readonly PodFacts[];
  readonly own: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
}

function stepped(seen: SeenPods, evaluation: Evaluation): StepFinding {
  const { now } = evaluation;
  const step = stepOf(seen, evaluation);
  const { verdict } = step;
  const course = courseOf(evaluation);
  const doneAt = verdict === "Done" ? (course.doneAt ?? now.at) : undefined;
  const bindsMs = (evaluation.memory.cordonedMs ?? course.startedMs) + bindingMs;
  // A scheduler that has not seen the cordon may still bind pods, which have to leave as well.
  if (verdict === "Done" && now.ms < bindsMs) {
    evaluation.remember({ drain: { ...course, doneAt } });
    evaluation.lookAtMs(bindsMs);
    return "Wait";
  }
  const heldBy = explainHeld(step.blocked);
  evaluation.remember({ drain: { ...course, doneAt, heldBy } });
  if (verdict !== "Running") return ended(verdict, seen.pods, evaluation);
  askPods(evaluation);
  freeCapacityOfLeaving(evaluation);
  evaluation.look(step.askAgainAt);
  if (step.nextBeatMs !== undefined) evaluation.lookAtMs(now.ms + step.nextBeatMs);
  return "Wait";
}

function courseOf({ memory }: Evaluation): DrainCourse {
  if (memory.drain === undefined) throw new Error("a drain is stepped after it has begun");
  return memory.drain;
}

/** One step of the drain. `nextBeatMs`: until it has to be recorded that the drain can act. */
function stepOf(
  { pods, own, budgets }: SeenPods,
  evaluation: Evaluation,
): DrainStep & { readonly nextBeatMs: number | undefined } {
  const { scene, now, memory } = evaluation;
  const before = courseOf(evaluation);
  const terms = drainTermsOf(evaluation.departure, before);
  const { deadlineAt, rule } = terms;
  const beat = { ms: now.ms, beatMs: beatOf(before.rule.timeoutMs) };
  const isHeard = scene.heardMs > before.clock.seenMs;
  const clock = isHeard ? answeredAt(before.clock, { ...beat, ms: scene.heardMs }) : before.clock;
  const activeMs = activeTime(clock, beat);
  const target = memory.target as NonNullable<typeof memory.target>;
  const view: DrainView = {
    ...{ livePods: pods, ownPods: own, budgets, ...terms },
    node: nodeOf(target, evaluation),
    isTaken: isTakenEventually(evaluation.departure),
    ...{ isNoticed: evaluation.isNoticed, beganWith: new Set(memory.beganWith), self: scene.self },
    waitedMs: timeBefore("waitSeconds", before.countedBefore, evaluation),
    // Without a deadline of the cloud, only the time in which the drain could act counts.
    startedAt: deadlineAt === undefined ? minus(now.at, activeMs) : before.beganAt,
    ...{ known: scene.terminations, now: now.at },
  };
  const { memory: after, step, plan } = drainStep(before.memory, view);
  const hasVolumes = own.some((pod) => pod.volumeClaims.length > 0);
  const volumes = hasVolumes ? "Some" : before.volumes;
  const isTimed = deadlineAt === undefined && rule.onTimeout !== "Wait";
  // No drain lasts by its timeout beyond this: only by the grace that its pods still have.
  const mostMs = millis(2 * (rule.timeoutMs + after.longestWaitMs));
  const beats = isTimed ? beatsOf(activeMs, { beatMs: beat.beatMs, mostMs }) : undefined;
  const counted = withEarlierOutcomes(step.counts, before.countedBefore);
  const counts = { ...counted, activeSeconds: beats?.seconds };
  evaluation.remember({ counts, drain: { ...before, memory: after, clock, volumes } });
  evaluation.says.push({ kind: "DrainStepped", step: { ...step, counts }, plan });
  shown({ ...step, counts }, plan.demands, evaluation);
  return { ...step, counts, nextBeatMs: beats?.leftMs && Math.max(beats.leftMs, leastBeatMs) };
}

/** Progress is part of the status as it should stand. */
function shown(
  { counts, blocked }: Pick<DrainStep, "counts" | "blocked">,
  planned: Parameters<typeof contestable>[0],
  evaluation: Evaluation,
): void {
  const { status, departure } = evaluation;
  const open = contestable(planned);
  const demands = status.demands ?? (open.length > 0 ? open : undefined);
  if (status.phase !== "Draining") {
    evaluation.intend({ ...status, drain: counts });
    return;
  }
  const heldBy = explainHeld(blocked);
  const reason = heldBy === undefined ? "DrainRunning" : "DrainBlocked";
  const message = explain(reason, { node: departure.node.name, detail: heldBy });
  evaluation.intend({ ...status, reason, message, drain: counts, ...(demands && { demands }) });
}

/** Each act that is under way, with a key of its own for each attempt. */
function askPods(evaluation: Evaluation): void {
  const { memory, rule, beganAt } = courseOf(evaluation);
  const dueAt = cloudDeadline(evaluation.departure) ?? plus(beganAt, rule.timeoutMs);
  for (const [uid, state] of Object.entries(memory.progress)) {
    if (state.kind !== "InFlight") continue;
    const key = actKey(uid, state.act, state.attempts);
    evaluation.requests.push({ kind: "Pod", act: state.act, key, dueAt });
  }
}

function actKey(uid: string, { kind }: DrainAct, attempts: number): string {
  return `pod ${uid} ${kind} ${attempts}`;
}

/**
 * Removes the placeholder of an evicted pod, whose replacement needs the capacity now. Not
 * earlier: a pod that its budget protects keeps its reservation, and the replacement preempts a
 * placeholder that is still there.
 */
function freeCapacityOfLeaving(evaluation: Evaluation): void {
  if (!hasReserved(evaluation.status)) return;
  for (const [uid, state] of Object.entries(courseOf(evaluation).memory.progress)) {
    if (!("by" in state) || state.by === "Others") continue;
    const name = placeholderName(uid);
    evaluation.attempt({ kind: "Unreserve", name, key: `free ${name}` });
  }
}

function ended(
  verdict: DrainEnd["verdict"],
  staying: readonly PodFacts[],
  evaluation: Evaluation,
): StepFinding {
  const { now } = evaluation;
  const { doneAt, rule, heldBy: detail, memory, beganAt, volumes } = courseOf(evaluation);
  const endedAt = doneAt ?? now.at;
  const { firstPlan: plan } = memory;
  const { counts } = evaluation.memory;
  const account = plan && counts && drainAccount({ plan, startedAt: beganAt, endedAt, counts });
  const end: DrainEnd = { verdict, endedAt, rule, detail, account, volumes, staying };
  evaluation.says.push({ kind: "DrainEnded", end });
  evaluation.remember({ drained: end, emptyAt: now.at, emptyMs: now.ms });
  // It holds no budgets any more: those that wait for it may start.
  const { demands: _, ...status } = evaluation.status;
  evaluation.intend(status);
  return rollBackOf(end);
}

function rollBackOf({ verdict, detail }: DrainEnd): StepFinding {
  return verdict === "TimedOut" ? { event: "GaveUp", reason: "DrainTimeout", detail } : undefined;
}

/**
 * Recounts the pods before a drain ends because its node is gone: the pod watch may lag behind the
 * node watch, and pods that left in time must not count as lost with the machine. False while that
 * is not known; the last count stands if it cannot be known.
 */
export function recounted(evaluation: Evaluation, since: number): boolean {
  const { status, memory } = evaluation;
  if (status.phase !== "Draining" || memory.drain === undefined || memory.drained) return true;
  if (memory.counts?.left === 0) return true;
  const pods = evaluation.hope("podsNow", since);
  const fault = evaluation.faultOf("podsNow");
  if (pods === undefined) {
    if (fault === undefined) return false;
    evaluation.says.push({ kind: "Faulted", event: "pods-not-counted", fault });
    return true;
  }
  const known = new Set(memory.own);
  const own = pods.filter(({ uid }) => known.has(uid));
  stepOf({ pods, own, budgets: [] }, evaluation);
  return true;
}
