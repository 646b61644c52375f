import { backoffMs, type Rng } from "../chance/chance.ts";
import { fittedGrace } from "../drain-plan/drain-limit.ts";
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

/** The result of evicting or deleting a pod. Source: the eviction subresource, 1.36. */
export type EvictionAnswer =
  /** 201: the pod is terminating. */
  | { readonly kind: "Accepted" }
  /** 404: the pod no longer exists. */
  | { readonly kind: "Gone" }
  /** 409: another pod has the name. */
  | { readonly kind: "Replaced" }
  /** 429 with the cause DisruptionBudget; `stale`: the budget's status lags behind its spec. */
  | {
      readonly kind: "Blocked";
      readonly budget?: string | undefined;
      readonly message: string;
      readonly retryAfterMs?: Millis | undefined;
      readonly stale: boolean;
    }
  /** 429 without a cause: priority and fairness, or an overloaded server. */
  | {
      readonly kind: "Overloaded";
      readonly message: string;
      readonly retryAfterMs?: Millis | undefined;
    }
  | { readonly kind: "NamespaceTerminating" }
  /** Several PodDisruptionBudgets select the pod: the API never evicts it. */
  | { readonly kind: "MultipleBudgets"; readonly message: string }
  /** Denied by a webhook, with any status, or for lack of permission. */
  | {
      readonly kind: "Refused";
      readonly status: number;
      readonly message: string;
      readonly retryAfterMs?: Millis | undefined;
    }
  /** An error of the server, or of a webhook that it called; without a status of our own making. */
  | {
      readonly kind: "Failed";
      readonly status?: number | undefined;
      readonly retryable: boolean;
      readonly message: string;
    }
  /** The connection was lost after sending, so it may have succeeded. */
  | { readonly kind: "NoAnswer"; readonly message: string };

const firstPauseMs: Millis = millis(200);
const longestPauseMs: Millis = seconds(10);
/**
 * Under a notice, the longest pause as a share of the remaining time: a budget may allow the
 * eviction at any moment.
 */
const pauseShare = 0.1;
const leastBoundMs: Millis = seconds(2);

export interface SentAct {
  readonly progress: DrainProgress;
  readonly act: DrainAct;
  /** The deadline of the step. */
  readonly deadlineAt?: Instant | undefined;
  readonly now: Instant;
}

/**
 * Records that an act is sent. Returns the progress and the grace period for the request
 * (undefined: the pod's own), which the deadline may have shortened while the act was queued.
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
    graceSeconds: sent.cut ? graceSeconds : named,
  };
}

export interface RecordedAnswer {
  readonly progress: DrainProgress;
  /** The act of the response. */
  readonly act: DrainAct;
  readonly answer: EvictionAnswer;
  /** The deadline of the step. */
  readonly deadlineAt?: Instant | undefined;
  readonly now: Instant;
  readonly rng: Rng;
}

/**
 * Records the response to an act. It changes nothing if the live pods already show the pod leaving
 * or gone, or another act has been sent since. A response that is not final is retried after a
 * pause of the pod's own, so that a blocked pod delays no other.
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
      // This act did not cause it, but one whose response was lost may have.
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

type EvictionRefusal = Exclude<EvictionAnswer, { kind: "Accepted" | "Gone" | "Replaced" }>;

function refused(
  state: InFlightPod,
  about: Omit<RecordedAnswer, "answer"> & { readonly answer: EvictionRefusal },
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

/** Whether it is the server's problem, as opposed to a decision about this pod. */
function isPassing(answer: EvictionRefusal): boolean {
  if (answer.kind === "Failed") return answer.retryable;
  return answer.kind === "Overloaded" || answer.kind === "NoAnswer";
}

function troubleOf(answer: EvictionRefusal, act: DrainAct): Trouble {
  switch (answer.kind) {
    case "Blocked": {
      const reason = answer.stale ? "BudgetStale" : "BudgetHolds";
      return { reason, message: answer.message, budget: answer.budget };
    }
    case "Overloaded":
      return { reason: "ApiOverloaded", message: withStatus(answer.message, 429) };
    case "NamespaceTerminating":
      return { reason: "NamespaceTerminating", message: "the namespace is being deleted" };
    case "MultipleBudgets":
      return { reason: "MultipleBudgets", message: answer.message };
    case "Refused":
      if (act.kind === "RestartOwner") return { reason: "RestartRefused", message: answer.message };
      return { reason: "EvictionRefused", message: withStatus(answer.message, answer.status) };
    case "Failed":
      return { reason: "EvictionFailed", message: withStatus(answer.message, answer.status) };
    case "NoAnswer":
      return { reason: "AnswerLost", message: answer.message };
  }
}

function withStatus(message: string, status: number | undefined): string {
  return status === undefined ? message : `${status}: ${message}`;
}

/**
 * The pause after the `attempts`-th refusal: 0.1 to 0.2 s at first, doubling to 5 to 10 s, and
 * under a notice at most a tenth of the remaining time, or 2 s if that is more. It is random, so
 * that pods that were refused together are not retried together.
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
