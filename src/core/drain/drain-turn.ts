import type { PodFacts } from "../cluster/pod.ts";
import type { DrainReason, ForceReason } from "../departure/drain-reason.ts";
import {
  type DrainLimit,
  forceTime,
  graceAt,
  latestAsk,
  marginMs,
} from "../drain-plan/drain-limit.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import { stuckAfterMs } from "../drain-plan/pod-action.ts";
import { earliest, type Instant, later, millis, plus } from "../time/time.ts";
import {
  type BlockedPod,
  type DrainAct,
  type InFlightPod,
  lastTrouble,
  type PodProgress,
  type RestartingPod,
  type WaitingPod,
} from "./drain-progress.ts";
import { neededTime, type TerminationRecords } from "./drain-time.ts";

export interface TurnView {
  readonly plan: DrainPlan;
  readonly limit: DrainLimit;
  /** The termination times of the same workloads. */
  readonly records: TerminationRecords;
  readonly now: Instant;
}

/** What is due for a pod: an act, or when to evaluate again (absent: at a change). */
export type Turn =
  | {
      readonly kind: "Act";
      readonly act: DrainAct;
      readonly graceSeconds: number;
      readonly cut: boolean;
    }
  | { readonly kind: "Look"; readonly at?: Instant | undefined };

export interface Turner {
  readonly planned: PlannedPod;
  readonly state: PodProgress;
  readonly live: PodFacts;
  /** Whether every pod of the lower tiers is gone. */
  readonly lowerGone: boolean;
}

type Open = WaitingPod | BlockedPod | RestartingPod;

const never: Turn = { kind: "Look" };

/** Reasons that exclude a pod from a planned drain, whatever its budgets allow. */
export const untouchable: ReadonlySet<DrainReason> = new Set([
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
]);

/**
 * Whether a planned drain skips the pod, by annotation or rule, possibly until `freeAt`.
 */
export function isUntouchable(planned: PlannedPod, view: TurnView): boolean {
  if (planned.action !== "Block" || view.limit.kind === "Deadline") return false;
  if (!untouchable.has(planned.reason)) return false;
  return planned.freeAt === undefined || planned.freeAt > view.now;
}

/** Decides what is due for one pod now. */
export function turnOf(turner: Turner, view: TurnView): Turn {
  const { planned, state } = turner;
  if (state.kind === "Gone") return never;
  // One millisecond more, because the pod counts as stuck only after that time.
  if (state.kind === "Leaving") {
    const stuckAt = plus(state.deadlineAt, millis(stuckAfterMs + 1));
    return stuckAt > view.now ? look(stuckAt) : never;
  }
  if (isUntouchable(planned, view)) return look(planned.freeAt);
  const forceAt = forcedAt(turner, view);
  if (state.kind === "InFlight") return unanswered(state, { turner, view, forceAt });
  const openAt = openTime(turner, view);
  if (openAt === undefined || openAt > view.now) return look(openAt);
  return opened(state, { turner, view, forceAt });
}

/** When the pod is due; undefined if not by time alone. */
function openTime(turner: Turner, view: TurnView): Instant | undefined {
  const { planned, state } = turner;
  const { limit, plan, now } = view;
  const latest = latestAsk(planned.wantedGraceSeconds, limit);
  const pressed = limit.kind === "Deadline";
  if (state.kind === "Restarting") return latest;
  if (planned.reason === "NamespaceTerminating" && !pressed) return latest;
  // Without a deadline, the planned starts are estimates: only the latest start counts.
  const dueAt = pressed ? earliest(plus(plan.at, planned.startMs), latest) : latest;
  if (!turner.lowerGone) return dueAt;
  return earliest(
    planned.waitEndsMs === undefined ? now : plus(plan.at, planned.waitEndsMs),
    dueAt,
  );
}

/** When a pod whose eviction is refused is deleted. */
function forcedAt({ planned, state }: Turner, { limit, records }: TurnView): Instant | undefined {
  const neededMs = planned.owner && neededTime(records.get(planned.owner.uid));
  // In a burst, the deletion would take as long as the last request did.
  const lateMs = ("answeredInMs" in state && state.answeredInMs) || 0;
  const pod = {
    wantedSeconds: planned.wantedGraceSeconds,
    neededMs: neededMs && millis(neededMs + lateMs),
  };
  return forceTime(pod, limit);
}

interface DueTurn {
  readonly turner: Turner;
  readonly view: TurnView;
  readonly forceAt: Instant | undefined;
}

/**
 * An eviction may hang in the server for 10 s, and a forced deletion does not wait for its
 * response. But an eviction that is still queued on our side has not been refused, and a deletion
 * would be queued as well.
 */
function unanswered(state: InFlightPod, due: DueTurn): Turn {
  const { sentAt, act } = state;
  if (due.forceAt === undefined || sentAt === undefined || act.kind === "Delete") return never;
  const giveUpAt = later(due.forceAt, plus(sentAt, marginMs));
  return due.view.now >= giveUpAt ? deletion(forceReason(due.view), due) : look(giveUpAt);
}

function opened(state: Open, due: DueTurn): Turn {
  const { turner, view, forceAt } = due;
  const { planned } = turner;
  const paused = state.nextTryAt !== undefined && state.nextTryAt > view.now;
  const refused = state.kind !== "Restarting" && state.attempts > 0 && wasMeant(state);
  if (refused && forceAt !== undefined && view.now >= forceAt) {
    const again = state.asked?.kind === "Delete" && paused;
    return again ? look(state.nextTryAt) : deletion(forceReason(view), due);
  }
  if (state.trouble?.reason === "NamespaceTerminating" && view.limit.kind === "Deadline") {
    return deletion("NamespaceTerminating", due);
  }
  // A force time that has passed is no instant to wait for: an overloaded server never refused.
  const isAhead = forceAt !== undefined && forceAt > view.now;
  if (paused) return look(isAhead ? earliest(state.nextTryAt, forceAt) : state.nextTryAt);
  if (planned.action === "Delete") {
    const reason = planned.reason === "NamespaceTerminating" ? planned.reason : "DeleteRule";
    return deletion(reason, due);
  }
  if (planned.owner !== undefined && mayRestart(state, due)) {
    return restart(planned, planned.owner);
  }
  return eviction(due);
}

/** A refused restart is not retried: the pod then waits for its budget. */
function mayRestart(state: Open, { turner, view }: DueTurn): boolean {
  if (turner.planned.reason !== "RestartOwner" || view.limit.kind === "Deadline") return false;
  if (state.kind === "Restarting") return false;
  return state.trouble?.reason !== "RestartRefused" && state.asked?.kind !== "Evict";
}

/** An overloaded server has not decided about the pod, and would not delete it either. */
function wasMeant({ trouble }: Open): boolean {
  return trouble?.reason !== "ApiOverloaded";
}

function eviction(due: DueTurn): Turn {
  const { planned, live } = due.turner;
  const graceSeconds = graceNow(due, { isForced: false });
  const own = graceSeconds === live.graceSeconds;
  return {
    kind: "Act",
    act: { kind: "Evict", pod: identityOf(planned), graceSeconds: own ? undefined : graceSeconds },
    graceSeconds,
    cut: graceSeconds < planned.wantedGraceSeconds,
  };
}

function deletion(reason: ForceReason, due: DueTurn): Turn {
  const { planned, state } = due.turner;
  const isForced = reason === "ForcedAtDeadline" || reason === "ForcedAtTimeout";
  const graceSeconds = graceNow(due, { isForced });
  const refusal = isForced ? lastTrouble(state) : undefined;
  return {
    kind: "Act",
    act: { kind: "Delete", pod: identityOf(planned), graceSeconds, reason, refusal },
    graceSeconds,
    cut: graceSeconds < planned.wantedGraceSeconds,
  };
}

function restart(planned: PlannedPod, owner: NonNullable<PlannedPod["owner"]>): Turn {
  return {
    kind: "Act",
    act: { kind: "RestartOwner", pod: identityOf(planned), owner },
    graceSeconds: planned.wantedGraceSeconds,
    cut: false,
  };
}

function graceNow({ turner, view }: DueTurn, { isForced }: { readonly isForced: boolean }): number {
  const { limit, now: at } = view;
  return graceAt(turner.planned.wantedGraceSeconds, { limit, at, isForced });
}

function forceReason(view: TurnView): ForceReason {
  return view.limit.kind === "Deadline" ? "ForcedAtDeadline" : "ForcedAtTimeout";
}

function identityOf({ namespace, name, uid }: PlannedPod): DrainAct["pod"] {
  return { namespace, name, uid };
}

function look(at: Instant | undefined): Turn {
  return { kind: "Look", at };
}
