import type { OwnerFacts, PodFacts, PodIdentity } from "../cluster/pod.ts";
import type { DrainCounts, ForcedPod, UncleanPod } from "../departure/departure.ts";
import type { DrainReason, ForceReason } from "../departure/drain-reason.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import { stuckAfterMs } from "../drain-plan/pod-action.ts";
import { between, type Instant, type Millis, plus } from "../time/time.ts";
import { type Loss, ruleOfLoss, type Termination } from "./drain-time.ts";

/** What to do now. Each act names the pod's uid, so that it cannot hit another pod of that name. */
export type DrainAct =
  | {
      readonly kind: "Evict";
      readonly pod: PodIdentity;
      /** Absent: the pod's own grace period. */
      readonly graceSeconds?: number | undefined;
    }
  | {
      readonly kind: "Delete";
      readonly pod: PodIdentity;
      readonly graceSeconds: number;
      readonly reason: ForceReason;
      /** What the API answered last, if the pod is deleted because of that. */
      readonly refusal?: Trouble | undefined;
    }
  /** Restarts the owner's rollout. An annotation makes repeats ineffective. */
  | { readonly kind: "RestartOwner"; readonly pod: PodIdentity; readonly owner: OwnerFacts };

/** The last problem that the API reported. */
export interface Trouble {
  readonly reason: DrainReason;
  readonly message: string;
  readonly budget?: string | undefined;
}

interface Tried {
  readonly pod: PodIdentity;
  readonly attempts: number;
  readonly nextTryAt?: Instant | undefined;
  /** The last act that failed. */
  readonly asked?: DrainAct | undefined;
  readonly trouble?: Trouble | undefined;
  /** How long that act took from the decision to the response, which is long in a burst. */
  readonly answeredInMs?: Millis | undefined;
}

export interface WaitingPod extends Tried {
  readonly kind: "Waiting";
}

export interface BlockedPod extends Tried {
  readonly kind: "Blocked";
  readonly sinceAt: Instant;
  readonly trouble: Trouble;
}

/** An act is in flight. */
export interface InFlightPod extends Tried {
  readonly kind: "InFlight";
  readonly decidedAt: Instant;
  /**
   * The uid of its controller if the pod was running and ready, so that the time it takes counts
   * for the others.
   */
  readonly workload?: string | undefined;
  /** Absent while the request is queued, as in a burst. */
  readonly sentAt?: Instant | undefined;
  readonly act: DrainAct;
  readonly graceSeconds: number;
  readonly cut: boolean;
  /** Set for the retry of a blocked pod, which stays blocked until it is allowed. */
  readonly held?: Trouble | undefined;
}

/** Its owner creates a replacement elsewhere and then deletes it. */
export interface RestartingPod extends Tried {
  readonly kind: "Restarting";
  readonly sinceAt: Instant;
}

/** Who caused a pod to leave, and how. */
interface Credit {
  readonly by: "Eviction" | "Delete" | "Others";
  readonly forced?: ForceReason | undefined;
  readonly cut: boolean;
}

/** Terminating. At `deadlineAt` the object is gone, or its processes are killed. */
export interface LeavingPod extends Credit {
  readonly kind: "Leaving";
  readonly pod: PodIdentity;
  readonly sinceAt: Instant;
  readonly deadlineAt: Instant;
  /** Set if the pod was running, ready, and left at our request. */
  readonly measured?: { readonly workload: string; readonly askedAt: Instant } | undefined;
}

/**
 * The outcome of a pod. `CleanExit`: gone within its grace period. `Killed`: gone at the end of it.
 * `LeftBehind`: still there at the end of the drain, or long after its grace period.
 */
export type PodOutcome = "CleanExit" | "Killed" | "LeftBehind";

export interface GonePod extends Credit {
  readonly kind: "Gone";
  readonly pod: PodIdentity;
  readonly at: Instant;
  readonly how: PodOutcome;
  /** The loss, if the audit could have predicted it. */
  readonly loss?: Loss | undefined;
  readonly termination?: Termination | undefined;
}

export type PodProgress =
  | WaitingPod
  | BlockedPod
  | InFlightPod
  | RestartingPod
  | LeavingPod
  | GonePod;

/** By pod uid. Empty at the start, and after a change of leader. */
export type DrainProgress = Readonly<Record<string, PodProgress>>;

/**
 * Updates the progress from the live pods: which are terminating, which are gone. A new leader
 * needs nothing else to resume a drain: a terminating pod is `Leaving` until its
 * `metadata.deletionTimestamp`, and all others are evicted (again). Pods are identified by uid;
 * another pod of the same name does not belong to the drain. Outcomes are final.
 */
export function observeDrain(about: {
  readonly plan: DrainPlan;
  readonly progress: DrainProgress;
  readonly livePods: readonly PodFacts[];
  readonly now: Instant;
}): DrainProgress {
  const live = new Map(about.livePods.map((pod) => [pod.uid, pod]));
  const next: Record<string, PodProgress> = {};
  for (const { namespace, name, uid } of about.plan.pods) {
    next[uid] = { kind: "Waiting", pod: { namespace, name, uid }, attempts: 0 };
  }
  for (const { namespace, name, uid, reason } of about.plan.skipped) {
    if (reason !== "StuckTerminating") continue;
    next[uid] = leftBehindFromTheStart({ namespace, name, uid }, about.now);
  }
  for (const [uid, state] of Object.entries(about.progress)) {
    // A pod that a newer plan skips is not waited for either.
    const dropped = !(uid in next) && live.has(uid) && !("by" in state);
    if (!dropped) next[uid] = state;
  }
  for (const [uid, state] of Object.entries(next)) {
    next[uid] = observed(state, { pod: live.get(uid), plan: about.plan, now: about.now });
  }
  return next;
}

/** A skipped pod that ends with the machine, which the status records. */
function leftBehindFromTheStart(pod: PodIdentity, at: Instant): GonePod {
  return { kind: "Gone", pod, at, how: "LeftBehind", by: "Others", cut: false };
}

function observed(
  state: PodProgress,
  about: {
    readonly pod: PodFacts | undefined;
    readonly plan: DrainPlan;
    readonly now: Instant;
  },
): PodProgress {
  const { pod, plan, now } = about;
  if (state.kind === "Gone") return state;
  if (pod === undefined || pod.phase === "Succeeded" || pod.phase === "Failed") {
    return goneFrom(state, { at: now });
  }
  const leaving = pod.deletionAt === undefined ? state : leavingFrom(state, pod.deletionAt, now);
  if (leaving.kind !== "Leaving") return leaving;
  // An unreachable node never confirms an exit, and after the deadline no node is likely to.
  const isStuck = now > stuckFrom(leaving.deadlineAt);
  const hopeless = plan.unreachable === "Noticed" || (isStuck && plan.unreachable === false);
  return hopeless ? goneFrom(leaving, { at: now, how: "LeftBehind" }) : leaving;
}

/** After this, a terminating pod whose grace period ended then is stuck. */
export function stuckFrom(deadlineAt: Instant): Instant {
  return plus(deadlineAt, stuckAfterMs);
}

function leavingFrom(
  state: Exclude<PodProgress, GonePod>,
  deadlineAt: Instant,
  now: Instant,
): LeavingPod {
  const { pod } = state;
  const sinceAt = state.kind === "Leaving" ? state.sinceAt : now;
  const measured = measureOf(state);
  return { kind: "Leaving", pod, sinceAt, deadlineAt, measured, ...creditOf(state) };
}

/** A pod that the watch shows leaving before our response arrives counts as ours. */
export function measureOf(state: Exclude<PodProgress, GonePod>): LeavingPod["measured"] {
  if (state.kind === "Leaving") return state.measured;
  if (state.kind !== "InFlight") return undefined;
  const { workload, sentAt: askedAt } = state;
  return workload === undefined || askedAt === undefined ? undefined : { workload, askedAt };
}

/** The ended state. Without `how`, the time decides whether the grace period was used up. */
export function goneFrom(
  state: Exclude<PodProgress, GonePod>,
  about: { readonly at: Instant; readonly how?: PodOutcome | undefined },
): GonePod {
  const killed = state.kind === "Leaving" && about.at >= state.deadlineAt;
  const how = about.how ?? (killed ? "Killed" : "CleanExit");
  const loss = lossOf(state, how);
  const termination = terminationOf(state, { at: about.at, how });
  return { kind: "Gone", pod: state.pod, at: about.at, how, loss, termination, ...creditOf(state) };
}

/** Undefined if it is unknown when the pod was evicted, or how long it would have taken. */
function terminationOf(
  state: Exclude<PodProgress, GonePod>,
  { at, how }: { readonly at: Instant; readonly how: PodOutcome },
): Termination | undefined {
  if (state.kind !== "Leaving" || state.measured === undefined) return undefined;
  const { workload, askedAt } = state.measured;
  if (how === "CleanExit") return { workload, took: between(askedAt, at) };
  return at >= state.deadlineAt ? { workload, took: "Killed" } : undefined;
}

/** Undefined for a clean exit, and if the pod's manifest does not show the cause. */
function lossOf(state: Exclude<PodProgress, GonePod>, how: PodOutcome): Loss | undefined {
  if (how === "CleanExit") return undefined;
  if (state.kind === "Leaving") {
    if (state.cut) return "Cut";
    return how === "Killed" ? "OverGrace" : undefined;
  }
  const troubles = { MultipleBudgets: "TwoBudgets", BudgetHolds: "Blocked" } as const;
  const reason = state.trouble?.reason;
  return reason === "MultipleBudgets" || reason === "BudgetHolds" ? troubles[reason] : undefined;
}

/** Also counts an act in flight, or without a response, because it may have succeeded. */
export function creditOf(state: Exclude<PodProgress, GonePod>): Credit {
  if (state.kind === "Leaving") return { by: state.by, forced: state.forced, cut: state.cut };
  const cut = state.kind === "InFlight" && state.cut;
  const lost = state.trouble?.reason === "AnswerLost" ? state.asked : undefined;
  const act = state.kind === "InFlight" ? state.act : lost;
  if (act?.kind === "Evict") return { by: "Eviction", cut };
  if (act?.kind === "Delete") return { by: "Delete", forced: act.reason, cut };
  return { by: "Others", cut: false };
}

/**
 * An error of the server counts as holding a pod once it has been answered this often in a row of
 * attempts, about a second after the first: one that passes at once is no news.
 */
const passingErrors = 3;

/** What blocks a pod; undefined if nothing does. */
export function troubleThatHolds(state: PodProgress | undefined): Trouble | undefined {
  if (state?.kind === "Blocked") return state.trouble;
  if (state?.kind === "Waiting" && state.attempts >= passingErrors) return state.trouble;
  return state?.kind === "InFlight" ? state.held : undefined;
}

/** The last problem of a pod that has not left, whatever it was. */
export function lastTrouble(state: PodProgress | undefined): Trouble | undefined {
  return state !== undefined && "trouble" in state ? state.trouble : undefined;
}

/** How many pods without a clean exit a Departure's status names. */
const namedPodsLimit = 20;

/**
 * The counts for a Departure's status. `left` are the pods that are still there, or were at the
 * end; `held` are the uids of pods that a budget, an annotation or a rule blocks.
 */
export function countDrain(
  progress: DrainProgress,
  held: ReadonlySet<string> = new Set(),
): DrainCounts {
  const states = Object.values(progress);
  const count = (holds: (state: PodProgress) => boolean): number => states.filter(holds).length;
  const ended = (how: PodOutcome): number =>
    count((state) => state.kind === "Gone" && state.how === how);
  return {
    total: states.length,
    left: count((state) => state.kind !== "Gone" || state.how === "LeftBehind"),
    evicted: count((state) => "by" in state && state.by === "Eviction"),
    forced: count((state) => "by" in state && state.by === "Delete"),
    waiting: count((state) => state.kind !== "Gone" && !held.has(state.pod.uid)),
    blocked: count((state) => state.kind !== "Gone" && held.has(state.pod.uid)),
    cut: count((state) => "by" in state && state.cut),
    cleanExit: ended("CleanExit"),
    killed: ended("Killed"),
    leftBehind: ended("LeftBehind"),
    notClean: states.flatMap(uncleanPod).slice(0, namedPodsLimit),
    forcedPods: states.flatMap(forcedPod).slice(0, namedPodsLimit),
  };
}

/**
 * Adds the counts that an earlier leader has written. Its pods are gone and not in our counts; pods
 * that are still leaving are not counted twice, because we did not evict them; and pods that it
 * left behind are in our counts again.
 */
export function withEarlierOutcomes(
  counts: DrainCounts,
  earlier: DrainCounts | undefined,
): DrainCounts {
  if (earlier === undefined) return counts;
  const goneBefore = (earlier.cleanExit ?? 0) + (earlier.killed ?? 0);
  const killedBefore = (earlier.notClean ?? []).filter(({ outcome }) => outcome === "Killed");
  return {
    ...counts,
    total: goneBefore + counts.total,
    evicted: earlier.evicted + counts.evicted,
    forced: earlier.forced + counts.forced,
    cut: earlier.cut + counts.cut,
    cleanExit: (earlier.cleanExit ?? 0) + (counts.cleanExit ?? 0),
    killed: (earlier.killed ?? 0) + (counts.killed ?? 0),
    notClean: [...killedBefore, ...(counts.notClean ?? [])].slice(0, namedPodsLimit),
    forcedPods: [...(earlier.forcedPods ?? []), ...(counts.forcedPods ?? [])].slice(
      0,
      namedPodsLimit,
    ),
  };
}

const nothingYet: DrainCounts = {
  ...{ total: 0, left: 0, evicted: 0, forced: 0, waiting: 0, blocked: 0, cut: 0 },
};

/** Adds pods that were bound after the drain and lost with the machine. */
export function withLeftBehind(
  counts: DrainCounts = nothingYet,
  pods: readonly PodIdentity[],
): DrainCounts {
  const { total, left } = counts;
  const more = { total: total + pods.length, left: left + pods.length };
  return { ...withReturned(counts, pods), ...more };
}

/**
 * Names pods that came back to the node in spite of the cordon as left behind. Like the pods of
 * DaemonSets, they are none that the drain has to move, so neither `total` nor `left` counts them,
 * and the outcome of the departure is the same without them.
 */
export function withReturned(counts: DrainCounts, pods: readonly PodIdentity[]): DrainCounts {
  if (pods.length === 0) return counts;
  const named = pods.map(
    ({ namespace, name }): UncleanPod => ({ namespace, name, outcome: "LeftBehind" }),
  );
  return {
    ...counts,
    leftBehind: (counts.leftBehind ?? 0) + pods.length,
    notClean: [...(counts.notClean ?? []), ...named].slice(0, namedPodsLimit),
  };
}

function uncleanPod(state: PodProgress): UncleanPod[] {
  if (state.kind !== "Gone" || state.how === "CleanExit") return [];
  const { namespace, name } = state.pod;
  const rule = state.loss === undefined ? undefined : ruleOfLoss(state.loss);
  return [{ namespace, name, outcome: state.how, rule }];
}

function forcedPod(state: PodProgress): ForcedPod[] {
  if (!("by" in state) || state.by !== "Delete" || state.forced === undefined) return [];
  const { namespace, name } = state.pod;
  return [{ namespace, name, reason: state.forced }];
}
