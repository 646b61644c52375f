import { backoffMs } from "../chance/backoff.ts";
import type { Rng } from "../chance/rng.ts";
import { fittedGrace } from "../drain-plan/drain-order.ts";
import { between, type Instant, type Millis, millis, plus, seconds } from "../time/time.ts";
import {
  creditOf,
  type DrainAct,
  type DrainProgress,
  goneFrom,
  type InFlightPod,
  measureOf,
  type PodProgress,
  type Trouble,
} from "./drain-progress.ts";

/** What came of asking one pod to leave. Source of the cases: the eviction subresource, 1.36. */
export type EvictionAnswer =
  /** 201: the pod's termination has begun. */
  | { readonly kind: "Accepted" }
  /** 404: there is no such pod any more. */
  | { readonly kind: "Gone" }
  /** 409: a pod of that name is there, but another one. */
  | { readonly kind: "Replaced" }
  /** 429 with the cause DisruptionBudget; `stale`: the budget's status is behind its spec. */
  | {
      readonly kind: "Blocked";
      readonly budget?: string | undefined;
      readonly message: string;
      readonly retryAfterMs?: Millis | undefined;
      readonly stale: boolean;
    }
  /** 429 as plain text: priority and fairness, or an overloaded server. */
  | { readonly kind: "Overloaded"; readonly retryAfterMs?: Millis | undefined }
  | { readonly kind: "NamespaceTerminating" }
  /** More than one PodDisruptionBudget selects the pod: the API evicts it never. */
  | { readonly kind: "MultipleBudgets"; readonly message: string }
  /** A webhook or a missing right said no. */
  | { readonly kind: "Refused"; readonly status: number; readonly message: string }
  | { readonly kind: "Failed"; readonly retryable: boolean; readonly message: string }
  /** The connection was lost after sending: it may have happened. */
  | { readonly kind: "NoAnswer"; readonly message: string };

const firstPauseMs: Millis = millis(200);
const longestPauseMs: Millis = seconds(10);
/**
 * Under a notice no pause is longer than this part of what is left: a budget gives way at any
 * moment.
 */
const pauseShare = 0.1;
const leastBoundMs: Millis = seconds(2);

export interface SentAct {
  readonly progress: DrainProgress;
  readonly act: DrainAct;
  /** The step's. */
  readonly deadlineAt?: Instant | undefined;
  readonly now: Instant;
}

/**
 * Progress as an act goes out, and the grace that it is to name (undefined: the pod's own). It may
 * have waited for its turn: then no more grace is left than the deadline allows from now.
 */
export function recordSending({ progress, act, deadlineAt, now }: SentAct): {
  readonly progress: DrainProgress;
  readonly graceSeconds: number | undefined;
} {
  const named = "graceSeconds" in act ? act.graceSeconds : undefined;
  const state = progress[act.pod.uid];
  if (state?.kind !== "InFlight" || state.act.kind !== act.kind) {
    return { progress, graceSeconds: named };
  }
  const graceSeconds =
    deadlineAt === undefined
      ? state.graceSeconds
      : fittedGrace(state.graceSeconds, between(now, deadlineAt));
  const less = graceSeconds < state.graceSeconds;
  const sent: InFlightPod = { ...state, sentAt: now, graceSeconds, cut: state.cut || less };
  return {
    progress: { ...progress, [act.pod.uid]: sent },
    graceSeconds: less ? graceSeconds : named,
  };
}

export interface RecordedAnswer {
  readonly progress: DrainProgress;
  /** The act that is answered. */
  readonly act: DrainAct;
  readonly answer: EvictionAnswer;
  /** The step's. */
  readonly deadlineAt?: Instant | undefined;
  readonly now: Instant;
  readonly rng: Rng;
}

/**
 * Progress after the answer to an act. An answer that comes when the live pods have already shown
 * the pod leaving or gone, or when another act has gone out since, changes nothing. Whatever is not
 * final is asked again after a pause of its own, so that one blocked pod delays no other.
 */
export function recordAnswer(recorded: RecordedAnswer): DrainProgress {
  const { progress, act } = recorded;
  const state = progress[act.pod.uid];
  if (state?.kind !== "InFlight" || state.act.kind !== act.kind) return progress;
  return { ...progress, [act.pod.uid]: answered(state, recorded) };
}

function answered(state: InFlightPod, recorded: RecordedAnswer): PodProgress {
  const { answer, now } = recorded;
  switch (answer.kind) {
    case "Accepted":
      return accepted(state, now);
    case "Gone":
    case "Replaced":
      // This act did not do it, but one whose answer was lost may have.
      return goneFrom({ ...state, kind: "Waiting" }, { at: now });
    default:
      return refused(state, { ...recorded, answer });
  }
}

function accepted(state: InFlightPod, now: Instant): PodProgress {
  const { pod, act, graceSeconds } = state;
  if (act.kind === "RestartOwner") return { ...state, kind: "Restarting", sinceAt: now };
  const deadlineAt = plus(now, seconds(graceSeconds));
  const measured = measureOf(state);
  return { kind: "Leaving", pod, sinceAt: now, deadlineAt, measured, ...creditOf(state) };
}

type Refusal = Exclude<EvictionAnswer, { kind: "Accepted" | "Gone" | "Replaced" }>;

function refused(
  state: InFlightPod,
  about: Omit<RecordedAnswer, "answer"> & { readonly answer: Refusal },
): PodProgress {
  const { answer, now } = about;
  const { pod, attempts, act } = state;
  const retryAfterMs = "retryAfterMs" in answer ? (answer.retryAfterMs ?? 0) : 0;
  const leftMs = about.deadlineAt && between(now, about.deadlineAt);
  const pauseMs = millis(Math.max(retryAfterMs, retryPause(attempts, { leftMs, rng: about.rng })));
  const answeredInMs = between(state.decidedAt, now);
  const tried = { pod, attempts, asked: act, nextTryAt: plus(now, pauseMs), answeredInMs };
  const trouble = troubleOf(answer, act);
  return isPassing(answer)
    ? { kind: "Waiting", ...tried, trouble }
    : { kind: "Blocked", ...tried, trouble, sinceAt: now };
}

/** The server's own trouble, as against an answer about this pod. */
function isPassing(answer: Refusal): boolean {
  if (answer.kind === "Failed") return answer.retryable;
  return answer.kind === "Overloaded" || answer.kind === "NoAnswer";
}

function troubleOf(answer: Refusal, act: DrainAct): Trouble {
  switch (answer.kind) {
    case "Blocked": {
      const reason = answer.stale ? "BudgetStale" : "BudgetHolds";
      return { reason, message: answer.message, budget: answer.budget };
    }
    case "Overloaded":
      return { reason: "ApiOverloaded", message: "too many requests" };
    case "NamespaceTerminating":
      return { reason: "NamespaceTerminating", message: "the namespace is being deleted" };
    case "MultipleBudgets":
      return { reason: "MultipleBudgets", message: answer.message };
    case "Refused":
      if (act.kind === "RestartOwner") return { reason: "RestartRefused", message: answer.message };
      return { reason: "EvictionRefused", message: `${answer.status}: ${answer.message}` };
    case "Failed":
      return { reason: "EvictionFailed", message: answer.message };
    case "NoAnswer":
      return { reason: "AnswerLost", message: answer.message };
  }
}

/**
 * The pause after the `attempts`-th refusal: 0.1 to 0.2 s at first, twice as long each time, 5 to
 * 10 s in the end, and under a notice at most a tenth of what is left, or 2 s where that is more;
 * drawn from the upper half, so that pods that were refused together part.
 */
export function retryPause(
  attempts: number,
  { leftMs, rng }: { readonly leftMs?: Millis | undefined; readonly rng: Rng },
): Millis {
  const boundMs =
    leftMs === undefined ? longestPauseMs : Math.max(leastBoundMs, leftMs * pauseShare);
  const mostMs = millis(Math.min(longestPauseMs, boundMs));
  return backoffMs(attempts - 1, rng, { firstMs: firstPauseMs, mostMs });
}
