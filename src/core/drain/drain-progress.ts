import type { OwnerFacts, PodFacts, PodIdentity } from "../cluster/pod.ts";
import type { DrainCounts, ForcedPod, UncleanPod } from "../departure/departure.ts";
import type { DrainReason, ForceReason } from "../departure/drain-reason.ts";
import type { DrainPlan } from "../drain-plan/drain-plan.ts";
import { stuckAfterMs } from "../drain-plan/pod-action.ts";
import { between, type Instant, type Millis, plus } from "../time/time.ts";
import { type Loss, ruleOfLoss } from "./drain-account.ts";
import type { Termination } from "./termination-time.ts";

/** What the shell is to do now. Each act names the pod's uid, so that a namesake is not hit. */
export type DrainAct =
  | {
      readonly kind: "Evict";
      readonly pod: PodIdentity;
      /** Absent: the pod's own grace. */
      readonly graceSeconds?: number | undefined;
    }
  | {
      readonly kind: "Delete";
      readonly pod: PodIdentity;
      readonly graceSeconds: number;
      readonly reason: ForceReason;
    }
  /** A rollout restart of the owner, once; the mark it leaves makes a second one change nothing. */
  | { readonly kind: "RestartOwner"; readonly pod: PodIdentity; readonly owner: OwnerFacts };

/** What the API said last. */
export interface Trouble {
  readonly reason: DrainReason;
  readonly message: string;
  readonly budget?: string | undefined;
}

interface Tried {
  readonly pod: PodIdentity;
  readonly attempts: number;
  readonly nextTryAt?: Instant | undefined;
  /** The act that came to nothing last. */
  readonly asked?: DrainAct | undefined;
  readonly trouble?: Trouble | undefined;
  /** How long that act took from its decision to its answer: long in a rush. */
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

/** An act goes out, and its answer is awaited. */
export interface InFlightPod extends Tried {
  readonly kind: "InFlight";
  readonly decidedAt: Instant;
  /**
   * The uid of its controller, where it ran and was ready, so that its end is evidence for the
   * others.
   */
  readonly workload?: string | undefined;
  /** Absent while it waits for its turn, as it does in a rush. */
  readonly sentAt?: Instant | undefined;
  readonly act: DrainAct;
  readonly graceSeconds: number;
  readonly cut: boolean;
  /** Set where it is asked again of a pod that is held: it stays held until that is granted. */
  readonly held?: Trouble | undefined;
}

/** Its owner makes a new one elsewhere and then takes this one away. */
export interface RestartingPod extends Tried {
  readonly kind: "Restarting";
  readonly sinceAt: Instant;
}

/** Who set a pod's leaving off, and at what price. */
interface Credit {
  readonly by: "Eviction" | "Delete" | "Others";
  readonly forced?: ForceReason | undefined;
  readonly cut: boolean;
}

/** Terminating: the object is gone by `deadlineAt`, or its processes are killed then. */
export interface LeavingPod extends Credit {
  readonly kind: "Leaving";
  readonly pod: PodIdentity;
  readonly sinceAt: Instant;
  readonly deadlineAt: Instant;
  /** Set where it ran, was ready, and left at a request of ours. */
  readonly measured?: { readonly workload: string; readonly askedAt: Instant } | undefined;
}

/**
 * The one outcome of a pod. `CleanExit`: gone before its grace was over; `Killed`: with it;
 * `LeftBehind`: not gone when the drain ended, or long after it should have been.
 */
export type PodOutcome = "CleanExit" | "Killed" | "LeftBehind";

export interface GonePod extends Credit {
  readonly kind: "Gone";
  readonly pod: PodIdentity;
  readonly at: Instant;
  readonly how: PodOutcome;
  /** What the audit calls it, where it could have been foretold. */
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

/** By pod uid. Empty at the start, and again in a controller that has just taken over. */
export type DrainProgress = Readonly<Record<string, PodProgress>>;

/**
 * Progress with what the live pods show: who is terminating, who is gone. This is all that a new
 * controller needs to go on with a drain: a terminating pod is `Leaving` until its own
 * `metadata.deletionTimestamp`, all others are asked (again). A pod is known by its uid; another
 * one of the same name is not this drain's affair. Outcomes are final.
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
    // A pod that a newer plan leaves alone is not waited for either.
    const dropped = !(uid in next) && live.has(uid) && !("by" in state);
    if (!dropped) next[uid] = state;
  }
  for (const [uid, state] of Object.entries(next)) {
    next[uid] = observed(state, { pod: live.get(uid), plan: about.plan, now: about.now });
  }
  return next;
}

/** Recorded in the status, although nothing touches it: it ends with the machine. */
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
  // Nobody confirms an exit on an unreachable node, and past its deadline nobody is likely to.
  const hopeless = plan.unreachable || now > plus(leaving.deadlineAt, stuckAfterMs);
  return hopeless ? goneFrom(leaving, { at: now, how: "LeftBehind" }) : leaving;
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

/** Where a watch has shown the pod leaving before our request was answered, it counts as ours. */
export function measureOf(state: Exclude<PodProgress, GonePod>): LeavingPod["measured"] {
  if (state.kind === "Leaving") return state.measured;
  if (state.kind !== "InFlight") return undefined;
  const { workload, sentAt: askedAt } = state;
  return workload === undefined || askedAt === undefined ? undefined : { workload, askedAt };
}

/** `state`, ended. Without `how` the time decides whether the pod used all its grace. */
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

/** Undefined where it is not known when the pod was asked, or whether it would still have ended. */
function terminationOf(
  state: Exclude<PodProgress, GonePod>,
  { at, how }: { readonly at: Instant; readonly how: PodOutcome },
): Termination | undefined {
  if (state.kind !== "Leaving" || state.measured === undefined) return undefined;
  const { workload, askedAt } = state.measured;
  if (how === "CleanExit") return { workload, took: between(askedAt, at) };
  return at >= state.deadlineAt ? { workload, took: "Killed" } : undefined;
}

/** Undefined for a clean exit, and where the pod's own manifest does not show it. */
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

/** An act counts where it is under way, or where its answer was lost: it may well have happened. */
export function creditOf(state: Exclude<PodProgress, GonePod>): Credit {
  if (state.kind === "Leaving") return { by: state.by, forced: state.forced, cut: state.cut };
  const cut = state.kind === "InFlight" && state.cut;
  const lost = state.trouble?.reason === "AnswerLost" ? state.asked : undefined;
  const act = state.kind === "InFlight" ? state.act : lost;
  if (act?.kind === "Evict") return { by: "Eviction", cut };
  if (act?.kind === "Delete") return { by: "Delete", forced: act.reason, cut };
  return { by: "Others", cut: false };
}

/** What holds a pod up; undefined where nothing that it could not pass has been said of it. */
export function troubleThatHolds(state: PodProgress | undefined): Trouble | undefined {
  if (state?.kind === "Blocked") return state.trouble;
  return state?.kind === "InFlight" ? state.held : undefined;
}

/** So many pods that did not leave cleanly are named in a Departure's status. */
const namedPodsLimit = 20;

/**
 * The sum for a Departure's status: `left` are the pods that are still there, or were at the end;
 * `held` the uids of those that a budget, a mark or a rule holds up.
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
 * The counts with those that a controller before us has written. Its pods are gone, so that no
 * count of ours has them, and those that leave still are not credited twice: nobody of us has set
 * them off. What it left behind is among ours again.
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

/** The counts with pods that came when the drain was over, and went with their machine. */
export function withLeftBehind(
  counts: DrainCounts = nothingYet,
  pods: readonly PodIdentity[],
): DrainCounts {
  const named = pods.map(
    ({ namespace, name }): UncleanPod => ({ namespace, name, outcome: "LeftBehind" }),
  );
  return {
    ...counts,
    total: counts.total + pods.length,
    left: counts.left + pods.length,
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
