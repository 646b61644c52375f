import type { PodFacts } from "../cluster/pod.ts";
import type { DrainReason, ForceReason } from "../departure/drain-reason.ts";
import { fittedGrace, forceLead, marginMs, type NoticeSpan } from "../drain-plan/drain-order.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import { stuckAfterMs } from "../drain-plan/pod-action.ts";
import {
  between,
  earlier,
  earliest,
  type Instant,
  later,
  millis,
  minus,
  plus,
  seconds,
} from "../time/time.ts";
import type {
  BlockedPod,
  DrainAct,
  InFlightPod,
  PodProgress,
  RestartingPod,
  WaitingPod,
} from "./drain-progress.ts";
import { neededTime, type TerminationRecords } from "./termination-time.ts";

/** What ends a drain. */
export type DrainLimit =
  /** The machine goes then, whatever the pods want. */
  | (NoticeSpan & { readonly kind: "Deadline"; readonly at: Instant })
  /** Time is up then and the policy goes on without the pods that are left. */
  | { readonly kind: "Proceed"; readonly at: Instant; readonly spanMs: number }
  /** The drain is undone at a timeout, or waits for ever: nobody is forced. */
  | { readonly kind: "None" };

export interface TurnView {
  readonly plan: DrainPlan;
  readonly limit: DrainLimit;
  /** What pods of the same workloads took to end. */
  readonly records: TerminationRecords;
  readonly now: Instant;
}

/** One pod's turn: an act now, or when to look again (absent: when something changes). */
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
  /** Whether every pod of the lower tiers has gone. */
  readonly lowerGone: boolean;
}

type Open = WaitingPod | BlockedPod | RestartingPod;

const never: Turn = { kind: "Look" };

/** What keeps a pod out of a planned drain however its budgets stand. */
export const untouchable: ReadonlySet<DrainReason> = new Set([
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
]);

/**
 * Whether a planned drain leaves the pod alone: by annotation or rule, until `freeAt` if that is.
 */
export function isUntouchable(planned: PlannedPod, view: TurnView): boolean {
  if (planned.action !== "Block" || view.limit.kind === "Deadline") return false;
  if (!untouchable.has(planned.reason)) return false;
  return planned.freeAt === undefined || planned.freeAt > view.now;
}

/** What is due for one pod now. */
export function turnOf(turner: Turner, view: TurnView): Turn {
  const { planned, state } = turner;
  if (state.kind === "Gone") return never;
  // A moment more: only past it is the pod taken for stuck.
  if (state.kind === "Leaving") return look(plus(state.deadlineAt, millis(stuckAfterMs + 1)));
  if (isUntouchable(planned, view)) return look(planned.freeAt);
  const forceAt = forceTime(turner, view);
  if (state.kind === "InFlight") return unanswered(state, { turner, view, forceAt });
  const openAt = openTime(turner, view);
  if (openAt === undefined || openAt > view.now) return look(openAt);
  return opened(state, { turner, view, forceAt });
}

/** When the pod's time comes; undefined: not by the clock alone. */
function openTime(turner: Turner, view: TurnView): Instant | undefined {
  const { planned, state } = turner;
  const { limit, plan, now } = view;
  const latest = latestAsk(planned, limit);
  const pressed = limit.kind === "Deadline";
  if (state.kind === "Restarting") return latest;
  if (planned.reason === "NamespaceTerminating" && !pressed) return latest;
  const startAt = plus(plan.at, planned.startMs);
  if (planned.reason === "WaitCompleted") {
    return earliest(turner.lowerGone || pressed ? startAt : undefined, latest);
  }
  if (turner.lowerGone) return now;
  // The starts of a plan without a deadline are guesses: only what presses counts then.
  const fitted = plan.deadlineAt !== undefined && latest !== undefined;
  return fitted ? earlier(startAt, latest) : latest;
}

/**
 * When a pod is asked at the latest, so that its grace and the margin fit before the end; in the
 * past where it wants more than there is. Where the policy goes on after a timeout, not in its
 * first half.
 */
function latestAsk(planned: PlannedPod, limit: DrainLimit): Instant | undefined {
  if (limit.kind === "None") return undefined;
  const needMs = millis(planned.wantedGraceSeconds * 1000 + marginMs);
  if (limit.kind === "Deadline") return minus(limit.at, needMs);
  return minus(limit.at, millis(Math.min(needMs, limit.spanMs / 2)));
}

/** When a pod that has been refused is deleted. */
function forceTime({ planned, state }: Turner, view: TurnView): Instant | undefined {
  const { limit, records } = view;
  if (limit.kind !== "Deadline") return latestAsk(planned, limit);
  const neededMs = planned.owner && neededTime(records.get(planned.owner.uid));
  // In a rush the deletion would wait for its answer as long as the last request did.
  const lateMs = ("answeredInMs" in state && state.answeredInMs) || 0;
  const pod = {
    wantedSeconds: planned.wantedGraceSeconds,
    neededMs: neededMs && millis(neededMs + lateMs),
  };
  return minus(limit.at, forceLead(pod, limit));
}

interface Due {
  readonly turner: Turner;
  readonly view: TurnView;
  readonly forceAt: Instant | undefined;
}

/**
 * An eviction may hang for 10 s in the server; a forced deletion does not wait for its answer. But
 * one that still waits for its turn with us has been refused by nobody, and a deletion would wait
 * no shorter.
 */
function unanswered(state: InFlightPod, due: Due): Turn {
  const { sentAt, act } = state;
  if (due.forceAt === undefined || sentAt === undefined || act.kind === "Delete") return never;
  const giveUpAt = later(due.forceAt, plus(sentAt, marginMs));
  return due.view.now >= giveUpAt ? deletion(forceReason(due.view), due) : look(giveUpAt);
}

function opened(state: Open, due: Due): Turn {
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
  if (paused) return look(earliest(state.nextTryAt, forceAt));
  if (planned.action === "Delete") {
    const reason = planned.reason === "NamespaceTerminating" ? planned.reason : "DeleteRule";
    return deletion(reason, due);
  }
  if (planned.owner !== undefined && mayRestart(state, due)) {
    return restart(planned, planned.owner);
  }
  return eviction(due);
}

/** Once that is refused for good the pod waits for its budget, as it would without a restart. */
function mayRestart(state: Open, { turner, view }: Due): boolean {
  if (turner.planned.reason !== "RestartOwner" || view.limit.kind === "Deadline") return false;
  if (state.kind === "Restarting") return false;
  return state.trouble?.reason !== "RestartRefused" && state.asked?.kind !== "Evict";
}

/** A server that has too much to do has said nothing of the pod, and would not delete it either. */
function wasMeant({ trouble }: Open): boolean {
  return trouble?.reason !== "ApiOverloaded";
}

function eviction(due: Due): Turn {
  const { planned, live } = due.turner;
  const graceSeconds =
    due.view.limit.kind === "Deadline" ? graceNow(due) : planned.wantedGraceSeconds;
  const own = graceSeconds === live.graceSeconds;
  return {
    kind: "Act",
    act: { kind: "Evict", pod: identityOf(planned), graceSeconds: own ? undefined : graceSeconds },
    graceSeconds,
    cut: graceSeconds < planned.wantedGraceSeconds,
  };
}

function deletion(reason: ForceReason, due: Due): Turn {
  const { planned } = due.turner;
  const graceSeconds = graceNow(due);
  return {
    kind: "Act",
    act: { kind: "Delete", pod: identityOf(planned), graceSeconds, reason },
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

/** What is left until the end, at most what the pod wants, at least a second. */
function graceNow(due: Due): number {
  const { limit, now } = due.view;
  const wanted = due.turner.planned.wantedGraceSeconds;
  return fittedGrace(wanted, limit.kind === "None" ? seconds(wanted) : between(now, limit.at));
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
